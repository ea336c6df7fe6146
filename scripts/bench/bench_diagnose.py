"""The time to read a log of a gigabyte, next to `grep -ciE` of the same patterns; with the memory for it."""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench_measures import BenchFigure, seconds
from bench_nodes import ROOT

from sparkwright.causes.diagnose import log_book

DATA = ROOT / "tests" / "data"
SIZE = 1_000_000_000
SAMPLE = 100_000  # bytes that grep is given: it takes hours for all
SECONDS, MEMORY = 10.0, 200.0
LOAD, START = 80.0, 250.0  # milliseconds of CPU
GREP_LIMIT = 120.0
SERVING = DATA / "healthy" / "serving.log"
STARTS = ("captures_logs/b-8b-graphs.log", "captures_logs/m2-head.log", "captures_logs/v4-1m-s6.log")
_TO_ERE = ((r"\(\?:", "("), (r"\(\?P<\w+>", "("), (r"\\d", "[0-9]"), (r"(?<=[*+?}])\?", ""))
_NO_ERE = re.compile(r"\(\?|\\[DBAZ]")


def logs_take(repeats: int) -> list[BenchFigure]:
    """A log of serving with a start in it every 10 MB, all numbers different; the command as it is typed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.log"
        with path.open("wb") as file:  # piece by piece: a child's peak counts what its parent had when it began
            file.writelines(content())
        size = path.stat().st_size
        command = [sys.executable, "-m", "sparkwright", "diagnose", str(path)]
        taken = tuple(seconds(lambda: run(command)) for _ in range(min(repeats, 3)))
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        starts = Path(folder) / "starts.log"
        with starts.open("wb") as file:
            file.writelines(only_starts())
        slow = tuple(seconds(lambda: run([*command[:-1], str(starts)])) for _ in range(min(repeats, 3)))
        note = f"{size / 1e9:.2f} GB, {size / 1e6 / min(taken):.0f} MB/s at best; one pass: docs/adr/0007"
    return [
        BenchFigure("diagnose 1 GB", "file", taken, "s", SECONDS, compared_with_grep(), note, simulated=False),
        BenchFigure(
            "diagnose 100 MB of starts", "file", slow, "s", SECONDS / 10, note="the same starts again", simulated=False
        ),
        BenchFigure("its memory", "file", (peak,), "MiB", MEMORY, simulated=False),
        causes_load(repeats),
        start_takes(repeats),
    ]


def start_takes(repeats: int) -> BenchFigure:
    """CPU of the command for a log of four lines: its start."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "four.log"
        path.write_text("starting\nRuntimeError: no kernel image is available for execution on the device\nend\nbye\n")
        command = [sys.executable, "-m", "sparkwright", "diagnose", str(path)]
        taken = []
        for _ in range(repeats):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run(command)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime))
    return BenchFigure("diagnose of four lines", "file", tuple(taken), "ms", START, note="CPU", simulated=False)


def causes_load(repeats: int) -> BenchFigure:
    """CPU of reading all families, each time in a fresh interpreter; patterns are compiled later, when needed."""
    program = "import time; from sparkwright.causes.load import families; began = time.process_time(); families(); "
    command = [sys.executable, "-c", program + "print(1000 * (time.process_time() - began))"]
    taken = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(repeats)]
    return BenchFigure(
        "causes load", "this machine", tuple(taken), "ms", LOAD, note="CPU; 21 TOML files", simulated=False
    )


def run(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)


def content() -> Iterator[bytes]:
    dice, lines = random.Random(7), SERVING.read_text().splitlines()
    start = "\n".join((DATA / name).read_text() for name in STARTS).encode() + b"\n"
    block = "\n".join(vary_line(dice, dice.choice(lines)) for _ in range(80_000)).encode() + b"\n"
    for _ in range(SIZE // (len(block) + len(start))):
        yield start
        yield block


def only_starts() -> Iterator[bytes]:
    """A log of nothing but engine starts: most of its lines have a word that some cause needs."""
    start = "\n".join((DATA / name).read_text() for name in STARTS).encode() + b"\n"
    yield from (start for _ in range(SIZE // 10 // len(start)))


def vary_line(dice: random.Random, line: str) -> str:
    return re.sub(r"(?<![v/])[0-9]", lambda _: str(dice.randrange(10)), line)


def compared_with_grep() -> str:
    """grep's seconds for a gigabyte, from a sample."""
    patterns = [ere for pattern in log_book().patterns if (ere := ere_pattern(pattern.text))]
    with tempfile.TemporaryDirectory() as folder:
        log, listed = Path(folder) / "log", Path(folder) / "patterns"
        log.write_bytes(b"".join(content())[:SAMPLE])
        listed.write_text("".join(f"{one}\n" for one in patterns))
        command = ["grep", "-ciE", "-f", str(listed), str(log)]
        environ = {**os.environ, "LC_ALL": "C"}
        try:
            took = seconds(lambda: subprocess.run(command, env=environ, capture_output=True, timeout=GREP_LIMIT))
        except subprocess.TimeoutExpired:
            return f"grep -ciE of {len(patterns)} of them: over {GREP_LIMIT * SIZE / SAMPLE:,.0f} s"
    return f"grep -ciE of {len(patterns)} of them: {took * SIZE / SAMPLE:,.0f} s (from {SAMPLE // 1000} kB)"


def ere_pattern(pattern: str) -> str:
    """The same for grep -E, '' for what it cannot report (lookarounds)."""
    for old, new in _TO_ERE:
        pattern = re.sub(old, new, pattern)
    return "" if _NO_ERE.search(pattern) or "\n" in pattern else pattern
