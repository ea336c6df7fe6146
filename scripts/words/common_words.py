"""Writes logscan/common.txt: each word, and on how many of ten thousand lines of the logs in tests/data it is.

Starts and serving lines that are all well count most, failed starts a tenth of it. `--check`: writes nothing, exit 1
when the file is not as it would be. Run it by hand when such logs come; rules may then look for other words.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
TARGET = ROOT / "src/sparkwright/logscan/common.txt"
SERVING = [DATA / "healthy/serving.log"]
WELL = ("b-8b-graphs", "m2-head", "m2-worker", "s-ngram", "v4-1m-s6", "llama-ready")
STARTS = [*(DATA / f"captures_logs/{name}.log" for name in WELL)]
STARTS += [path for path in sorted(DATA.glob("healthy/*.log")) if path not in SERVING]
# d-*: recorded to measure `diagnose`; it would not do to fit anything to them.
FAILED = [path for path in sorted(DATA.glob("captures_logs/[!d]*.log")) if path not in STARTS]
# By guess: logs that fail are full of these, and no log here stands for them all. Of a thousand lines.
GUESSED = {
    "error": 100, "failed": 60, "fails": 3, "failure": 10, "exception": 60, "traceback": 60, "warning": 80,
    "crash": 2, "crashed": 1, "hang": 2, "hangs": 1, "cannot": 5, "invalid": 5,
}  # fmt: skip
SPLIT = re.compile(r"[\s:,=(){}\[\]'\"]+")
LETTER = re.compile(r"[^\W\d]")
A_NUMBER = re.compile(r"\d{3}|\d\d[.:]\d|0x[0-9a-f]{4}|it.s")


def main(words: list[str]) -> int:
    old, new = TARGET.read_text(), f"{word_table()}\n"
    if "--check" not in words:
        TARGET.write_text(new)
    elif new != old:
        print(f"{TARGET.relative_to(ROOT)} is stale: python scripts/words/common_words.py", file=sys.stderr)
    return int(new != old and "--check" in words)


def word_table() -> str:
    """`word count` pairs, the commonest first."""
    listed = " ".join(f"{word} {count}" for word, count in sorted(counted().items(), key=lambda one: (-one[1], one[0])))
    return "\n".join(textwrap.wrap(listed, 116, break_on_hyphens=False, break_long_words=False))


def counted() -> dict[str, int]:
    starts, serving, failed = line_share(STARTS), line_share(SERVING), line_share(FAILED)
    found = {}
    for word in {*starts, *serving, *failed}:
        often = (starts[word] + 2 * serving[word] + failed[word] / 2) / 3 * 1000
        least = 1 if LETTER.search(word) and not A_NUMBER.search(word) else 5
        if often >= least:
            found[word] = round(often * 10)
    return found | {word: max(found.get(word, 0), count * 10) for word, count in GUESSED.items()}


def line_share(paths: Iterable[Path]) -> Mapping[str, float]:
    """The share of lines that have each word."""
    lines = [line for path in paths for line in path.read_text(errors="replace").split("\n") if line.strip()]
    often: Counter[str] = Counter()
    for line in lines:
        often.update({word for word in SPLIT.split(line.lower()) if 1 < len(word) < 60})
    return defaultdict(float, {word: count / len(lines) for word, count in often.items()})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
