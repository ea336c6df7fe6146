"""Version and commit of this installation, for `--version` and bug reports."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sparkwright import __version__

_PACKAGE = Path(__file__).resolve().parent.parent


def full_version() -> str:
    """Return `0.2.0 (commit 1a2b3c4d5e6f)`, or the version alone if the commit is not known.

    A wheel that was built from git carries the commit; a checkout is asked.
    """
    commit = packaged_commit() or checkout_commit()
    return f"{__version__} (commit {commit})" if commit else __version__


def packaged_commit() -> str:
    try:
        return (_PACKAGE / "commit.txt").read_text().strip()[:40]
    except OSError:
        return ""


def checkout_commit() -> str:
    root = _PACKAGE.parent.parent
    if not (root / ".git").exists():
        return ""
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
