"""Files that are whole at every moment."""

import os
from pathlib import Path

import pytest

from sparkwright.adapters.artifacts import write


def test_it_is_private_and_replaces(tmp_path: Path) -> None:
    """Only its user reads it, and nothing else lies next to it."""
    path = tmp_path / "state.json"
    write(path, b"one")
    write(path, b"two")
    assert path.read_bytes() == b"two" and path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_one_stays_until_the_new_one_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut in between leaves what was there."""
    path = tmp_path / "state.json"
    write(path, b"old")
    seen = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(path.read_bytes()), real(handle)))
    write(path, b"new")
    assert seen == [b"old", b"new"]  # the content before its name, the folder after it
