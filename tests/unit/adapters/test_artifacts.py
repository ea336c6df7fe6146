"""Evidence on this machine."""

import stat
from pathlib import Path

import pytest

from fakes.clock import FakeClock
from sparkwright.adapters.artifacts import FolderArtifacts


def test_one_folder_per_run(tmp_path: Path) -> None:
    """The files of one run lie together, named by its time, readable by the user alone; nothing is overwritten."""
    clock = FakeClock()
    first, second = (FolderArtifacts(tmp_path / "a" / "b", clock) for _ in range(2))
    paths = [Path(first.save("v4", "rank-0.log", "zero"))]
    clock.advance(90)
    paths += [Path(first.save("v4", "rank-1.log", "one")), Path(second.save("v4", "rank-0.log", "0 \ud800"))]
    assert [path.relative_to(tmp_path / "a" / "b").parts for path in paths] == [
        ("v4", "20261121T040000Z", "rank-0.log"),
        ("v4", "20261121T040000Z", "rank-1.log"),
        ("v4", "20261121T040130Z", "rank-0.log"),
    ]
    assert [path.read_text() for path in paths] == ["zero", "one", "0 ?"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
    assert modes == {0o700, 0o600}


def test_two_runs_in_a_second(tmp_path: Path) -> None:
    """They do not share a folder."""
    runs = [FolderArtifacts(tmp_path, FakeClock()) for _ in range(2)]
    assert [Path(run.save("v4", "x", "")).parent.name for run in runs] == ["20261121T040000Z", "20261121T040000Z-2"]


def test_only_the_last_runs_are_kept(tmp_path: Path) -> None:
    """Old evidence of the same deployment goes, and nothing else in that folder."""
    clock = FakeClock()
    (tmp_path / "v4" / "notes").mkdir(parents=True)
    FolderArtifacts(tmp_path, clock, kept=3).save("other", "x", "")
    for _ in range(5):
        clock.advance(60)
        FolderArtifacts(tmp_path, clock, kept=3).save("v4", "x", "")
    kept = sorted(path.name for path in (tmp_path / "v4").iterdir())
    assert kept == ["20261121T040300Z", "20261121T040400Z", "20261121T040500Z", "notes"]
    assert len(list((tmp_path / "other").iterdir())) == 1


@pytest.mark.parametrize("name", ["../../up", "/abs", "..", "a b/c"])
def test_names_stay_inside(tmp_path: Path, name: str) -> None:
    """A name from elsewhere cannot leave its folder."""
    path = Path(FolderArtifacts(tmp_path, FakeClock()).save(name, name, "x"))
    assert path.is_relative_to(tmp_path) and len(path.relative_to(tmp_path).parts) == 3
