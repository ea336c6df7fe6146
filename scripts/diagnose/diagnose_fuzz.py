"""`make fuzz`: logs that were cut, mixed, coloured, packed and broken, fed to `diagnose` until the time is over.

diagnose_fuzz.py [--seconds N] [--seed N]. First each pattern on long lines that are made to keep it busy; exit 1 when
one is slow. Exit 1, and the case as a file, when anything is raised or takes long.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from diagnose_report_cases import DATA, YEAR

from sparkwright.adapters.log_files import chunks
from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.diagnose import line_causes, log_book
from sparkwright.logscan.literals import all_required
from sparkwright.logscan.logline import LONGEST

SLOW = 5.0  # seconds for at most SIZE bytes; a pattern that runs away takes minutes
SIZE = 200_000
SLOW_PATTERN = 0.5  # seconds for one line of LONGEST characters
JUNK = [
    b"\x1b[31m",
    b"\x1b[",
    b"\r",
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b"\xf0\x9f",
    b"[" * 50,
    b" " * 5000,
    b"a" * 9000,
    b"{",
]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="diagnose_fuzz.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args(words)
    slow = slow_patterns()
    print("".join(f"fuzz: {took:.1f} s for one line: {text}\n" for text, took in slow.items()), end="", file=sys.stderr)
    if slow:
        return 1
    dice, end, done = random.Random(chosen.seed), time.monotonic() + chosen.seconds, 0
    print(f"fuzz: seed {chosen.seed}, {chosen.seconds:.0f} s", file=sys.stderr)
    material = [path.read_bytes() for path in sorted(DATA.glob("*/*.log"))] + examples()
    while time.monotonic() < end:
        case = packed(dice, mix_logs(dice, material))
        if trouble := try_case(case):
            where = Path(tempfile.mkstemp(prefix="diagnose-fuzz-")[1])
            where.write_bytes(case)
            print(f"fuzz: after {done} cases: {trouble}\nfuzz: the case is {where}", file=sys.stderr)
            return 1
        done += 1
    print(f"{done} cases, nothing was raised and none took over {SLOW:.0f} s")
    return 0


def slow_patterns() -> dict[str, float]:
    """Pattern -> seconds, of those that a line can keep busy."""
    took = {
        pattern.text: max(map(time_pattern(pattern.text), hostile(pattern.text))) for pattern in log_book().patterns
    }
    return {text: seconds for text, seconds in took.items() if seconds > SLOW_PATTERN}


def time_pattern(pattern: str) -> Callable[[str], float]:
    compiled = re.compile(pattern, re.IGNORECASE)

    def seconds(line: str) -> float:
        began = time.perf_counter()
        compiled.search(line)
        return time.perf_counter() - began

    return seconds


def hostile(pattern: str) -> list[str]:
    """Lines that begin to match again and again, and never end."""
    words = [text for texts in all_required(pattern) for text in texts[:4]] or ["error"]
    each = [text for word in words for text in (f"{word} ", f"{word}a")]
    return [
        (text * LONGEST)[:LONGEST]
        for text in (*each, " ".join(words) + " 1.1 ", f"error tensor parallel 3 {words[0]} ")
    ]


def examples() -> list[bytes]:
    return [text.encode() for cause in line_causes().values() for text in (*cause.fires, *cause.silent)]


def mix_logs(dice: random.Random, material: list[bytes]) -> bytes:
    """Pieces of several logs with junk between them, and some bytes changed."""
    data = b"".join(log_piece(dice, dice.choice(material)) for _ in range(dice.randint(1, 12)))[:SIZE]
    changed = bytearray(data)
    for _ in range(dice.randint(0, 40) if changed else 0):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def log_piece(dice: random.Random, log: bytes) -> bytes:
    start = dice.randrange(len(log) or 1)
    return log[start : start + dice.randint(1, 20_000)] + b"".join(dice.choices(JUNK, k=dice.randint(0, 3)))


def packed(dice: random.Random, data: bytes) -> bytes:
    """The log as it is, in gzip that may be cut, or wrapped in journald's or Docker's JSON."""
    forms: list[Callable[[], bytes]] = [
        lambda: data,
        lambda: gzip.compress(data)[: dice.randint(1, len(data) + 40)],
        lambda: wrapped(data, lambda line: {"MESSAGE": list(line), "__REALTIME_TIMESTAMP": "1"}),
        lambda: wrapped(data, lambda line: {"log": line.decode("latin-1"), "time": "2026-11-02T10:11:12Z"}),
    ]
    return dice.choice(forms)()


def wrapped(data: bytes, record: Callable[[bytes], dict[str, object]]) -> bytes:
    return b"\n".join(json.dumps(record(line)).encode() for line in data.split(b"\n"))


def try_case(case: bytes) -> str:
    """The failure, '' for none."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(case)
        file.flush()
        began = time.monotonic()
        try:
            examine([("fuzz", chunks(Path(file.name)))], YEAR, {})
        except Exception:
            return traceback.format_exc()
    took = time.monotonic() - began
    return f"took {took:.1f} s for {len(case)} bytes" if took > SLOW else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
