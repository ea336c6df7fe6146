"""Build hook: the wheel knows the commit that it was built from, so that `sparkwright --version` can show it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add sparkwright/commit.txt; nothing where the sources are no git checkout, or git is missing."""
        words = ["git", "-C", self.root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        try:
            found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return
        if version == "editable" or not (Path(self.root) / ".git").exists():
            return
        file = Path(tempfile.mkdtemp()) / "commit.txt"
        file.write_text(f"{found}\n")
        build_data["force_include"][str(file)] = "sparkwright/commit.txt"
