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

from sparkwright.app.diagnose.examine import examine
from sparkwright.domain.diagnosis import Diagnosis

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "healthy-recorded"
SHARED = ROOT.parent / "shared" / "captures"
FIRST, SECOND, THIRD = (RECORDED / f"{name}.jsonl" for name in ("first", "second", "third"))
PUBLIC = ROOT / "tests" / "data" / "failures-fresh" / "public.jsonl"
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


def windows(content: bytes, size: int, most: int = MOST) -> Iterator[bytes]:
    lines = content.splitlines(keepends=True)
    step = max(1, len(lines) // most)
    return (b"".join(lines[at : at + size]) for at in range(0, max(1, len(lines) - size + 1), step))


def score(name: str, content: bytes, most: int = MOST) -> dict[str, Any]:
    """The answers to the whole log and its windows. most: windows of a size."""
    whole = _answer(content)
    row: dict[str, Any] = {"log": name, "blamed": whole[0], "status": whole[1], "named": whole[2]}
    for size in SIZES:
        answers = [_answer(window) for window in windows(content, size, most)]
        row[f"windows {size}"] = [len(answers), sum(one[0] for one in answers), sum(one[1] for one in answers)]
    return row


def _answer(content: bytes) -> tuple[bool, int, list[str]]:
    found = examine([("log", [content])], YEAR, {})
    named = [cause.key for cause in found.causes if cause.confidence >= BLAMED]
    return bool(named), status(found), named


def status(found: Diagnosis) -> int:
    """The exit status of `diagnose`."""
    return int(found.failure)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


PAGE_WINDOWS = 8  # of a size and log, for today's figure on the page
INTRODUCTION = """Logs in which nothing failed (engines that serve, services, builds, package managers, a kernel;
tests/data/healthy-recorded and logs that are not part of the project), whole and in windows of 1, 3 and 10 lines.
Blamed: a cause of .5 or more. Status 1: the exit status says that something failed. The third set (pieces of 48 public
logs of vLLM, SGLang, llama.cpp, TensorRT-LLM, NCCL, Docker builds and Compose, some of them from before a later
failure; 19 own recordings, vLLM 0.27.1 to 0.32.0 among them) was scored before anything was changed for it: it shows
what to expect of other logs. Its three logs that were recorded after the change were asked once more; what they showed
is repaired since.
"""
FAILURES = """Errors quoted in 40 public threads and notes whose cause is known (vLLM, SGLang, llama.cpp and Ollama,
TensorRT-LLM, NCCL, Docker and image builds), none of which a rule was written for before. Only a few lines of each are
there; nine that were cut off or only described were completed from the words of the thread. The second row was measured
after rules were written from them: it shows nothing about other logs.
"""
FAILURES_HEAD = (
    "| public failures | number | first cause right, of those known | line shown | status 1 | wrong at .8 or more |\n"
    "|---|---|---|---|---|---|"
)
HEAD = "| healthy logs | number | blamed | status 1 | windows | blamed | status 1 |\n|---|---|---|---|---|---|---|"


def row(name: str, scores: Sequence[dict[str, Any]]) -> str:
    of_windows = [sum(one[f"windows {size}"][n] for one in scores for size in SIZES) for n in range(3)]
    blamed, ended = (sum(one[key] for one in scores) for key in ("blamed", "status"))
    return f"| {name} | {len(scores)} | {blamed} | {ended} | " + " | ".join(f"{n:,}" for n in of_windows) + " |"


def section() -> list[str]:
    """The first part of the accuracy page: the first score of each log, and today's of the project's recordings."""
    second, third, public = map(_rows, (SECOND, THIRD, PUBLIC))
    own = [path.stem for path in sorted(RECORDED.glob("*.log"))]
    today = [score(name, (RECORDED / f"{name}.log").read_bytes(), PAGE_WINDOWS) for name in own]
    return [
        "## Healthy logs: is anything blamed?\n",
        INTRODUCTION,
        HEAD,
        row("**third set, its first score**", _when(third, "before")),
        row("of it, recorded after the change and asked once", _when(third, "after")),
        row("second set, asked once after an earlier change", _when(second, "after")),
        row("second set, the version before that change", _when(second, "before")),
        row("first set, before any rule was changed for it", _rows(FIRST)),
        row("today, what is part of the project of all sets", today),
        "",
        "## Public failures: is the cause named?\n",
        FAILURES,
        FAILURES_HEAD,
        failures_row("**first score**", _when(public, "before")),
        failures_row("after the change", _when(public, "after")),
        "",
    ]


def _when(scores: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one for one in scores if one["when"] == name]


def failures_row(name: str, scores: Sequence[dict[str, Any]]) -> str:
    known = [one for one in scores if one["keys"]]
    right = sum(one["first"] for one in known)
    shown, ended, wrong = (sum(one[key] for one in scores) for key in ("line", "status", "wrong"))
    return (
        f"| {name} | {len(scores)} | {right} of {len(known)} ({right / max(1, len(known)):.0%}) "
        f"| {shown} ({shown / max(1, len(scores)):.0%}) | {ended} | {wrong} |"
    )


def main(words: Sequence[str]) -> int:
    chosen = [word for word in words if not word.startswith("--")]
    given = {name: content for name, content in logs().items() if not chosen or name in chosen}
    first = _rows(FIRST)
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
