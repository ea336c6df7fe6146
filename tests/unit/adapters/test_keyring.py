"""Keys on the machine of the person who called."""

from pathlib import Path

import pytest

from sparkwright.adapters.artifacts import FolderKeyring
from sparkwright.domain.errors import UsageError


def test_only_this_user_reads_it(tmp_path: Path) -> None:
    """Guards modes, also where an older file was open to all."""
    ring = FolderKeyring(tmp_path / "keys")
    old = tmp_path / "keys" / "desk" / "laptop.key"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    old.chmod(0o644)
    path = Path(ring.save("desk", "laptop.key", "new\n"))
    assert path == old and path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_each_key_is_another() -> None:
    """Guards that keys are random and long."""
    ring = FolderKeyring(Path("unused"))
    assert len({ring.fresh() for _ in range(50)}) == 50
    assert len(ring.fresh()) == 24


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """Guards the message with the path."""
    (tmp_path / "keys").write_text("a file")
    with pytest.raises(UsageError, match="keys/desk/x cannot be written"):
        FolderKeyring(tmp_path / "keys").save("desk", "x", "y")
