"""The events that earlier checks have shown, on disk."""

from pathlib import Path

import pytest

from sparkwright.adapters.artifacts import read_events, write_events


def test_events_come_back_and_the_oldest_go(tmp_path: Path) -> None:
    """Guards a file that would grow with every boot of every node."""
    path = tmp_path / "checked" / "desk.json"
    write_events(path, {f"e{n}": float(n) for n in range(300)})
    assert sorted(read_events(path).values()) == [float(n) for n in range(100, 300)]
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b'{"a": "b"}', b"[" * 100_000])
def test_a_damaged_file_is_as_none(tmp_path: Path, content: bytes) -> None:
    """Guards `check` from its own memory: events are then shown once more."""
    path = tmp_path / "desk.json"
    assert read_events(path) == {}
    path.write_bytes(content)
    assert read_events(path) == {}
    write_events(path / "not" / "a folder.json", {"a": 1.0})
