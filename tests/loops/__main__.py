"""Measures the loop guard: false alarms on legitimate texts, and how soon true loops end. python -m loops [FOLDER...]

Real texts are every text file under the folders, at most 512 KiB of each.
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from loops.texts import LOOPS, looped, samples
from sparkwright.gateway.loops import LoopFinder, TextLoop

_MOST, _PIECE = 512 * 1024, 12
SUFFIXES = (
    ".py",
    ".pyi",
    ".md",
    ".txt",
    ".rst",
    ".json",
    ".toml",
    ".yaml",
    ".yml",
    ".js",
    ".css",
    ".html",
    ".h",
    ".c",
    ".sh",
    ".csv",
    ".log",
    ".svg",
)


def escaped(text: str) -> bytes:
    """The text as it stands in a JSON string of an event."""
    return json.dumps(text)[1:-1].encode()


def judged(text: bytes) -> tuple[TextLoop | None, int]:
    """The loop, and the bytes after which it was found."""
    finder = LoopFinder()
    for at in range(0, len(text), 1024):
        if found := finder.feed(text[at : at + 1024]):
            return found, at + 1024
    return None, len(text)


def real_texts(folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and (path.suffix in SUFFIXES or "LICEN" in path.name or "COPYING" in path.name):
                yield str(path), path.read_bytes()[:_MOST].decode("utf-8", "replace")


def main(folders: Sequence[str], seed: int = 1, each: int = 100) -> int:
    texts = wrong = size = 0
    began = time.process_time()
    for name, text in (*samples(seed, each), *real_texts(folders)):
        data = escaped(text)
        texts, size = texts + 1, size + len(data)
        if (found := judged(data)[0]) and (wrong := wrong + 1) <= 40:
            print(f"false alarm: {name}: {found.times} times {found.period[:70]!r}{' counts' * found.counts}")
    took = time.process_time() - began
    print(f"{wrong} false alarms in {texts} texts, {size / 1e6:.0f} MB; {took / size * 1e9:.1f} ns a byte")
    missed: Counter[str] = Counter()
    for kind in LOOPS:
        after = []
        for number in range(each):
            before, loop = looped(kind, random.Random(f"{kind} {seed} {number}"))
            start, data = escaped(before), escaped(loop)
            found, at = judged(start + data)
            if found:
                after.append(at - len(start))
            else:
                missed[kind] += 1
        after.sort()
        median, most = (after[len(after) // 2], after[-1]) if after else (0, 0)
        print(f"{kind}: {len(after)} of {each} ended, after {median} bytes in the median, {most} at most")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
