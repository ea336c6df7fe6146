"""`diagnose` scored on logs in which nothing failed (tests/data/healthy-recorded, and ../shared/captures if present).

diagnose_healthy.py [--first] [NAME...]. Prints how many whole logs, and how many of their windows of 1, 3 and 10 lines,
are blamed (a cause of 0.5 or more) or end with status 1.
--first: add the first score of logs that first.jsonl lacks; rows that are there never change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sparkwright.app.examine import examine
from sparkwright.domain.diagnosis import Diagnosis

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "data" / "healthy-recorded"
SHARED = ROOT.parent / "shared" / "captures"
FIRST = RECORDED / "first.jsonl"
YEAR = 2026
SIZES = (1, 3, 10)
BLAMED = 0.5  # confidence
MOST = 150  # windows of a size and log, evenly spread
_OF_SHARED = (
    "vllm-0.32.0-cpu/healthy-*.log",
    "vllm-0.33.0-h100/h-*.log",
    "llama.cpp-2026.10.11549/log",
    "sglang-0.5.12-1node/sg-b-*.log",
)


def logs() -> dict[str, bytes]:
    """Name -> content."""
    paths = sorted(RECORDED.glob("*.log"))
    shared = sorted(path for pattern in _OF_SHARED for path in SHARED.glob(pattern))
    own = {path.stem: path.read_bytes() for path in paths}
    return own | {f"{path.parent.name}/{path.stem}": path.read_bytes() for path in shared}


def windows(content: bytes, size: int) -> Iterator[bytes]:
    lines = content.splitlines(keepends=True)
    step = max(1, len(lines) // MOST)
    return (b"".join(lines[at : at + size]) for at in range(0, max(1, len(lines) - size + 1), step))


def score(name: str, content: bytes) -> dict[str, Any]:
    """How the whole log and its windows are answered."""
    whole = _answer(content)
    row: dict[str, Any] = {"log": name, "blamed": whole[0], "status": whole[1], "named": whole[2]}
    for size in SIZES:
        answers = [_answer(window) for window in windows(content, size)]
        row[f"windows {size}"] = [len(answers), sum(one[0] for one in answers), sum(one[1] for one in answers)]
    return row


def _answer(content: bytes) -> tuple[bool, int, list[str]]:
    found = examine([("log", [content])], YEAR, {})
    named = [cause.key for cause in found.causes if cause.confidence >= BLAMED]
    return bool(named), status(found), named


def status(found: Diagnosis) -> int:
    """The exit status of `diagnose`."""
    return int(found.failure)


def first_scores() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FIRST.read_text(encoding="utf-8").splitlines()] if FIRST.exists() else []


HEAD = "| healthy logs | number | blamed | status 1 | windows | blamed | status 1 |\n|---|---|---|---|---|---|---|"


def row(name: str, scores: Sequence[dict[str, Any]]) -> str:
    of_windows = [sum(one[f"windows {size}"][n] for one in scores for size in SIZES) for n in range(3)]
    blamed, ended = (sum(one[key] for one in scores) for key in ("blamed", "status"))
    return f"| {name} | {len(scores)} | {blamed} | {ended} | " + " | ".join(f"{n:,}" for n in of_windows) + " |"


def main(words: Sequence[str]) -> int:
    chosen = [word for word in words if not word.startswith("--")]
    given = {name: content for name, content in logs().items() if not chosen or name in chosen}
    first = first_scores()
    if "--first" in words:
        known = {one["log"] for one in first}
        first += [score(name, content) for name, content in given.items() if name not in known]
        FIRST.write_text("".join(f"{json.dumps(one)}\n" for one in first), encoding="utf-8")
    today = [score(name, content) for name, content in given.items()] if "--first" not in words else []
    print("\n".join([HEAD, row("first score", first), *([row("today", today)] if today else [])]))
    print("\n".join(_misses(today)))
    return 0


def _misses(scores: Iterable[dict[str, Any]]) -> list[str]:
    return [
        f"{one['log']}: {one['named']} status {one['status']}; {[one[f'windows {size}'] for size in SIZES]}"
        for one in scores
        if one["blamed"] or one["status"] or any(sum(one[f"windows {size}"][1:]) for size in SIZES)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
