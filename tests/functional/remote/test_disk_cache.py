"""The folder of a KV cache on a real file system: what is removed for its size, and what is told of it."""

import os
from pathlib import Path

import pytest

from fakes.sh import Sh
from sparkwright.remote.disk_cache import IS_AWAY, disk_cache_usage, prepare_disk_cache, rename_slot, saved_slots


def written(folder: Path, name: str, size: int, age: int) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    at = 1_700_000_000 - age
    os.utime(path, (at, at))
    return path


def test_the_oldest_go_until_it_fits(node_shell: Sh) -> None:
    """Guards a disk that fills up: an engine's own tier has no limit. What lies outside is never touched."""
    folder = node_shell.home / "kv"
    files = [written(folder, f"a b/{n}.bin", 1000, age) for n, age in enumerate((50, 10, 30, 20, 40))]
    outside = written(node_shell.home / "other", "x", 5000, 900)
    (folder / "link").symlink_to(outside)
    assert node_shell.run(prepare_disk_cache(str(folder), 3500)).ok
    assert [path.exists() for path in files] == [False, True, True, True, False]
    assert outside.exists() and (folder / "link").is_symlink()
    assert node_shell.run(prepare_disk_cache(str(folder), 3500)).ok and sum(path.exists() for path in files) == 3


def test_a_folder_is_made_or_the_reason_told(node_shell: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards a start whose disk is not mounted: a mount point of root's, a file in its place, a disk mounted
    read-only."""
    there = node_shell.home / "disk/twin-1"
    assert node_shell.run(disk_cache_usage(str(there))).stdout == "gone\n"
    assert node_shell.run(prepare_disk_cache(str(there), 1)).ok and there.is_dir()
    (node_shell.home / "file").write_text("")
    said = node_shell.run(prepare_disk_cache(str(node_shell.home / "file/twin-1"), 1))
    assert said.exit_code == IS_AWAY and "Not a directory" in said.stdout
    said = node_shell.run(prepare_disk_cache("/proc/twin-1", 1))
    assert said.exit_code == IS_AWAY and "cannot create directory" in said.stdout
    (node_shell.home / "bin").mkdir()
    (node_shell.home / "bin/findmnt").write_text("#!/bin/sh\necho ro,relatime\n")
    (node_shell.home / "bin/findmnt").chmod(0o755)
    monkeypatch.setenv("PATH", f"{node_shell.home}/bin:{os.environ['PATH']}")
    said = node_shell.run(prepare_disk_cache(str(there), 1))
    assert (said.exit_code, said.stdout) == (IS_AWAY, "its disk is mounted read-only\n")


def test_its_use_is_told(node_shell: Sh) -> None:
    """Bytes in it, and free on its disk."""
    folder = node_shell.home / "kv"
    written(folder, "one", 300_000, 1)
    word, used, free = node_shell.run(disk_cache_usage(str(folder))).stdout.split()
    assert word == "used" and 300_000 <= int(used) < 400_000 and int(free) > 0


def test_slots_that_hold_something_are_listed(node_shell: Sh) -> None:
    """Guards a start that asks for what is there: an empty file, one that is being written, and a folder that is
    away."""
    folder = node_shell.home / "kv"
    assert node_shell.run(saved_slots(str(folder))).stdout == ""
    folder.mkdir()
    assert node_shell.run(saved_slots(str(folder))).stdout.split() == ["slots"]
    for name, size in (("slot-0.bin", 5), ("slot-12.bin", 9), ("slot-3.bin", 0), ("slot-4.bin.tmp", 7)):
        written(folder, name, size, 1)
    assert sorted(node_shell.run(saved_slots(str(folder))).stdout.split()) == ["slot-0.bin", "slot-12.bin", "slots"]
    assert node_shell.run(rename_slot(str(folder), "slot-0.bin", "slot-0.taken")).ok
    assert (folder / "slot-0.taken").stat().st_size == 5 and not (folder / "slot-0.bin").exists()
    assert not node_shell.run(rename_slot(str(folder), "slot-0.bin", "slot-0.taken")).ok
    assert (folder / "slot-0.taken").stat().st_size == 5
