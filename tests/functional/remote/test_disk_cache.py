"""The folder of a KV cache on a real file system: what is removed for its size, and what is told of it."""

import os
from pathlib import Path

from fakes.sh import Sh
from sparkwright.remote.disk_cache import disk_cache_usage, prune_disk_cache


def written(folder: Path, name: str, size: int, age: int) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    at = 1_700_000_000 - age
    os.utime(path, (at, at))
    return path


def test_the_oldest_go_until_it_fits(sh: Sh) -> None:
    """Guards a disk that fills up: an engine's own tier has no limit. What lies outside is never touched."""
    folder = sh.home / "kv"
    files = [written(folder, f"a b/{n}.bin", 1000, age) for n, age in enumerate((50, 10, 30, 20, 40))]
    outside = written(sh.home / "other", "x", 5000, 900)
    (folder / "link").symlink_to(outside)
    assert sh.run(prune_disk_cache(str(folder), 3500)).ok
    assert [path.exists() for path in files] == [False, True, True, True, False]
    assert outside.exists() and (folder / "link").is_symlink()
    assert sh.run(prune_disk_cache(str(folder), 3500)).ok and sum(path.exists() for path in files) == 3


def test_a_folder_that_is_not_there_is_no_error(sh: Sh) -> None:
    """A disk that is not mounted stops no start, and is told."""
    assert sh.run(prune_disk_cache(str(sh.home / "gone"), 1)).ok
    assert sh.run(disk_cache_usage(str(sh.home / "gone"))).stdout == "gone\n"


def test_its_use_is_told(sh: Sh) -> None:
    """Bytes in it, and free on its disk."""
    folder = sh.home / "kv"
    written(folder, "one", 300_000, 1)
    word, used, free = sh.run(disk_cache_usage(str(folder))).stdout.split()
    assert word == "used" and 300_000 <= int(used) < 400_000 and int(free) > 0
