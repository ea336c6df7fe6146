"""Files that others write: what counts while one cannot be read."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkwright.adapters.watched import Watched


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def parse(text: bytes) -> str:
    if text.startswith(b"bad"):
        raise ValueError("bad")
    return text.decode()


def written(path: Path, text: str) -> None:
    (path.parent / "new").write_text(text)
    (path.parent / "new").replace(path)


def without_descriptors(look: Callable[[], object]) -> object:
    """Looks while this process can open nothing."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, before[1]))
    held = []
    try:
        try:
            while True:
                held.append(os.dup(0))
        except OSError:
            return look()
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_revoke_without_descriptors_counts_once_they_are_back(tmp_path: Path) -> None:
    """Guards that one read that failed is tried again, and that nobody is let in for more than a moment meanwhile."""
    clock, path = Time(), tmp_path / "keys"
    written(path, "good")
    keys = Watched(path, parse, "", clock, patience=2)
    assert keys.value == "good"
    written(path, "revoked")
    assert without_descriptors(lambda: keys.value) == "good"
    clock.now = 1
    assert keys.value == "revoked"
    written(path, "again")
    assert without_descriptors(lambda: keys.value) == "revoked"
    clock.now = 4
    assert without_descriptors(lambda: (keys.value, keys.given_up)) == ("", True)
    clock.now = 5
    assert (keys.value, keys.given_up) == ("again", False)


def test_what_cannot_be_parsed_is_tried_again_with_pauses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Guards one line of log for each trouble, and a read each 0.2 s instead of one a request."""
    clock, path, reads = Time(), tmp_path / "live", []

    def counted(text: bytes) -> str:
        reads.append(text)
        return parse(text)

    written(path, "good")
    live = Watched(path, counted, "none", clock)
    assert live.value == "good"
    written(path, "bad")
    for now in (0, 0.1, 0.3, 100):
        clock.now = now
        assert (live.value, live.given_up) == ("good", False)
    assert len(reads) == 4
    assert capsys.readouterr().err.count("\n") == 1
    written(path, "better")
    clock.now = 101
    assert live.value == "better"


def test_the_same_file_back_again_is_read(tmp_path: Path) -> None:
    """Guards that a file whose mark is the old one, and which was unreadable meanwhile, does not stay empty."""
    clock, path = Time(), tmp_path / "keys"
    written(path, "good")
    os.link(path, tmp_path / "kept")
    keys = Watched(path, parse, "", clock, patience=1)
    assert keys.value == "good"
    written(path, "bad")
    assert keys.value == "good"
    clock.now = 3
    assert keys.value == ""
    (tmp_path / "kept").replace(path)
    clock.now = 4
    assert keys.value == "good"
    path.unlink()
    assert keys.value == ""


def test_a_file_may_be_looked_at_less_often(tmp_path: Path) -> None:
    """Guards the choice among many replicas: one look serves for all that is asked in the same moment."""
    path, time = tmp_path / "file", Time()
    file = Watched(path, parse, "", time).at_most_every(0.005)
    written(path, "a")
    assert file.value == "a"
    written(path, "b")
    assert file.value == "a"
    time.now = 0.006
    assert file.value == "b"
