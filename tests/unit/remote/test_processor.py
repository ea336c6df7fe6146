"""The differences between processors: GB10 runs kernels with pages of 4 KiB and of 64 KiB."""

import ast
import os
import re
from pathlib import Path
from typing import Any

import pytest

import sparkwright
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Memory
from sparkwright.facts.memory import parse

OURS = Path(sparkwright.__file__).parent
MIB = 1 << 20


def write_proc(folder: Path, page: int) -> None:
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
    write_proc(tmp_path, page)
    monkeypatch.setenv("SPARKWRIGHT_SYSROOT", str(tmp_path))
    program = (OURS / "remote/programs/guard.py").read_text().rpartition("\nsys.exit(")[0]  # the last line starts it
    guard: dict[str, Any] = {"__name__": "guard"}
    exec(program, guard)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGESIZE": page}[name])
    sampler = guard["Sampler"]()
    assert sampler.watermarks() == 64 * MIB
    assert sampler._large() == 3 * 16 * MIB


@pytest.mark.parametrize("page", [4096, 65536])
def test_pages_of_a_file_are_counted_in_the_pages_of_its_kernel(
    page: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mincore gives a byte a page: three of them are 192 KiB on a kernel of 64 KiB, and no more than the file has."""
    pages: dict[str, Any] = {"__name__": "pages"}
    exec((OURS / "remote/programs/pages.py").read_text().rpartition("\nmain(")[0], pages)

    class Kernel:
        asked = 0

        def mmap(self, *_: object) -> int:
            return page

        def mincore(self, _: int, size: int, states: Any) -> int:
            self.asked = len(states) - 1
            states[:3] = b"\1\1\1"
            return 0

        def munmap(self, *_: object) -> int:
            return 0

    pages["_LIBC"] = kernel = Kernel()
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGESIZE": page}[name])
    assert pages["cached"](-1, 10 * page) == 3 * page
    assert kernel.asked == 9 or kernel.asked == 10
    assert pages["cached"](-1, 2 * page + 1) == 2 * page + 1


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("page", [4096, 65536])
def test_free_blocks_of_a_node_are_counted_in_its_pages(page: int, told: bool) -> None:
    """The size is what getconf says, or without it the one that fits what /proc/meminfo calls free."""
    orders = (16 * MIB // page).bit_length()
    counts = ["0"] * (orders - 1) + ["64"]
    rows = {"MemTotal": 4 << 20, "MemFree": 1 << 20, "MemAvailable": 2 << 20, "Cached": 0, "AnonPages": 0, "Buffers": 0}
    lines = [f"{name}: {size} kB" for name, size in rows.items()] + [f"Node 0, zone Normal {' '.join(counts)}"]
    memory = parse(Completed(0, "\n".join([*lines, *([f"PageSize: {page}"] if told else []), ""])))
    assert isinstance(memory, Memory), memory
    assert memory.page == page and memory.in_blocks(16 * MIB) == 1 << 30


def test_no_layout_is_the_processors_own() -> None:
    """Every format of `struct` names its byte order: without one sizes and padding are those of the machine."""
    wrong = []
    for path in OURS.rglob("*.py"):
        text = path.read_text()
        tree = ast.parse(text if "import struct" in text else "")
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
        for call in calls:
            named = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
            if not named or call.func.value.id != "struct":  # type: ignore[attr-defined]
                continue
            form = call.args[0]
            first = form.values[0] if isinstance(form, ast.JoinedStr) else form
            if isinstance(first, ast.Constant) and str(first.value)[:1] not in "<>!=":
                wrong.append(f"{path.name}:{call.lineno}")
    assert not wrong


def test_no_program_calls_the_kernel_by_number() -> None:
    """Numbers of system calls differ between processors; libc's functions do not."""
    with_libc = [path.read_text() for path in OURS.rglob("*.py") if "ctypes" in path.read_text()]
    assert with_libc and not [text for text in with_libc if re.search(r"\bsyscall\(|__NR_|\bSYS_", text)]
