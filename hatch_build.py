"""Build hooks: a wheel knows the commit and the repository that it was built from.

`sparkwright --version` shows the commit; `pip show --verbose` and package indexes show the links.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# https://host/owner/name or git@host:owner/name, with or without a user and `.git`.
_REMOTE = re.compile(r"(?:https://(?:[^@/]*@)?|(?:ssh://)?git@)([\w.-]+)[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?")
_PAGES = {
    "Repository": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}


def git_output(root: str, *words: str) -> str:
    """Standard output; '' where the sources are no git checkout, or git is missing."""
    if not (Path(root) / ".git").exists():
        return ""
    try:
        found = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def repository_links(remote: str) -> dict[str, str]:
    """Links of a published repository, none of a folder or of an address that is no repository's."""
    found = _REMOTE.fullmatch(remote)
    return {name: f"https://{found[1]}/{found[2]}{path}" for name, path in _PAGES.items()} if found else {}


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add sparkwright/commit.txt, unless it is there already: a wheel of an sdist."""
        commit = git_output(self.root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
        if version == "editable" or not commit:
            return
        file = Path(tempfile.mkdtemp()) / "commit.txt"
        file.write_text(f"{commit}\n")
        folder = "src/sparkwright" if self.target_name == "sdist" else "sparkwright"
        build_data["force_include"][str(file)] = f"{folder}/commit.txt"


class LinksHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        """Add the links of the repository that this checkout was cloned from."""
        server, name = os.environ.get("GITHUB_SERVER_URL", ""), os.environ.get("GITHUB_REPOSITORY", "")
        remote = f"{server}/{name}" if server and name else git_output(self.root, "remote", "get-url", "origin")
        metadata["urls"] = repository_links(remote)
