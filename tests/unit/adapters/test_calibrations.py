"""Figures of earlier starts on this machine."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.adapters.artifacts import FolderCalibrations
from sparkwright.domain.calibration import Calibration, Conditions

UNDER = Conditions(
    "v4", "org/v4 abc", "vllm 0.21.0", "tp 2", "5e77", "11a1", 0, "spark-1", "sha256:1", "580.95", "f00d"
)
ONE = Calibration(
    UNDER, 10, 20, 30, 40, pool=99, phases=(("load", 1.5), ("server", 60.0)), at=1763700000.0, source="v4"
)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    """All of it, for the user's eyes only."""
    store = FolderCalibrations(tmp_path / "a" / "b")
    assert store.like(UNDER) == ()
    assert store.save(ONE) == ""
    assert FolderCalibrations(tmp_path / "a" / "b").like(UNDER) == (ONE,)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
    assert modes == {0o700, 0o600}


def test_a_later_start_replaces_the_earlier(tmp_path: Path) -> None:
    """One file for each place: a thousand starts of one recipe leave two files on two nodes."""
    store = FolderCalibrations(tmp_path)
    other = replace(ONE, conditions=replace(UNDER, node="spark-2", rank=1))
    for weights in range(3):
        store.save(replace(ONE, weights=weights))
    store.save(other)
    assert sorted(store.like(UNDER), key=lambda one: one.weights or 0) == [replace(ONE, weights=2), other]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["model", "engine", "split", "settings"])
def test_another_family_is_not_given(tmp_path: Path, name: str) -> None:
    """Figures of other weights are of no use; nor are simulated ones."""
    store = FolderCalibrations(tmp_path)
    store.save(ONE)
    assert store.like(replace(UNDER, **{name: "another"})) == ()
    assert store.like(replace(UNDER, simulated=True)) == ()


GOOD = json.dumps(
    {"conditions": {name: getattr(UNDER, name) for name in UNDER.__slots__}}
    | {name: getattr(ONE, name) for name in ONE.__slots__ if name != "conditions"}
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        "{}",
        "x" * 200_000,
        GOOD.replace('"weights": 10', '"weights": "10"'),
        GOOD.replace('"weights": 10', '"weights": true'),
        GOOD.replace('"at": 1763700000.0', '"at": NaN'),
        GOOD.replace('"at": 1763700000.0', '"at": 1e30'),
        GOOD.replace('"rank": 0', '"rank": "0"'),
        GOOD.replace('"phases": [["load"', '"phases": [[7'),
        GOOD.replace('"kv_tokens"', '"tokens"'),
    ],
)
def test_an_odd_file_counts_as_none(tmp_path: Path, text: str) -> None:
    """One that was cut short, is of another version or of somebody else: the plan goes on without."""
    store = FolderCalibrations(tmp_path)
    store.save(ONE)
    (path,) = tmp_path.glob("*.json")
    path.write_text(GOOD)
    assert store.like(UNDER) == (ONE,)
    path.write_text(text)
    assert store.like(UNDER) == ()
    assert store.save(ONE) == ""
    assert store.like(UNDER) == (ONE,)


def test_only_the_last_are_kept(tmp_path: Path) -> None:
    """The folder does not grow for ever."""
    store = FolderCalibrations(tmp_path, kept=3)
    for number in range(6):
        store.save(replace(ONE, conditions=replace(UNDER, limits=str(number))))
        for path in tmp_path.glob("*.json"):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 10))
    assert {one.conditions.limits for one in store.like(UNDER)} == {"3", "4", "5"}


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A full disk or a read-only home is the caller's to report; nothing is raised."""
    (tmp_path / "file").write_text("")
    assert "Not a directory" in FolderCalibrations(tmp_path / "file" / "sub").save(ONE)
    assert "Not a directory" in FolderCalibrations(tmp_path / "file").save(ONE)
    assert FolderCalibrations(tmp_path / "file").like(UNDER) == ()
