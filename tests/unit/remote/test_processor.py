"""The differences between processors: GB10 runs kernels with pages of 4 KiB and of 64 KiB."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

import sparkwright

OURS = Path(sparkwright.__file__).parent
MIB = 1 << 20


def tree(folder: Path, page: int) -> None:
    """/proc of a node with three free blocks of 16 MiB, and a high watermark of 64 MiB."""
    orders = (16 * MIB // page).bit_length()  # of the buddy allocator: blocks of 1, 2, 4 ... pages
    counts = ["1"] * (orders - 1) + ["3"]
    (folder / "proc").mkdir()
    (folder / "proc/buddyinfo").write_text(f"Node 0, zone   Normal {' '.join(counts)}\n")
    (folder / "proc/zoneinfo").write_text(f"  pages free 100\n        high     {64 * MIB // page}\n")
    (folder / "proc/meminfo").write_text("MemFree: 1024 kB\nMemAvailable: 2048 kB\n")


@pytest.mark.parametrize("page", [4096, 65536])
def test_the_guard_counts_in_the_pages_of_its_kernel(
    page: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks and watermarks are numbers of pages: with 64 KiB pages the same numbers are sixteen times as much."""
    tree(tmp_path, page)
    monkeypatch.setenv("SPARKWRIGHT_SYSROOT", str(tmp_path))
    program = (OURS / "remote/programs/guard.py").read_text().rpartition("\nsys.exit(")[0]  # the last line starts it
    guard: dict[str, Any] = {"__name__": "guard"}
    exec(program, guard)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGESIZE": page}[name])
    sampler = guard["Sampler"]()
    assert sampler.watermarks() == 64 * MIB
    assert sampler._large() == 3 * 16 * MIB


def test_no_program_calls_the_kernel_by_number() -> None:
    """Numbers of system calls differ between processors; libc's functions do not."""
    with_libc = [path.read_text() for path in OURS.rglob("*.py") if "ctypes" in path.read_text()]
    assert with_libc and not [text for text in with_libc if re.search(r"\bsyscall\(|__NR_|\bSYS_", text)]
