"""`diagnose` scored on logs in which nothing failed (tests/data/healthy-recorded, and ../shared/captures if present).

diagnose_healthy.py [--first] [NAME...]. Prints how many whole logs, and how many of their windows of 1, 3 and 10 lines,
are blamed (a cause of 0.5 or more) or end with status 1.
--first: add the first score of logs that first.jsonl lacks; rows that are there never change.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from sparkwright.app.diagnose.examine import examine
from sparkwright.domain.diagnosis import Diagnosis

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "healthy-recorded"
SHARED = ROOT.parent / "shared" / "captures"
FIRST = RECORDED / "first.jsonl"
SETS = Path(__file__).with_name("diagnose_sets.yaml")
YEAR = 2026
SIZES = (1, 3, 10)
BLAMED = 0.5  # confidence
FILTERS = ("half", "kind", "agreed")  # of the scores that a row of the page counts
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


def score_log(name: str, content: bytes, most: int = MOST) -> dict[str, Any]:
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
Blamed: a cause of .5 or more. Status 1: the exit status says that something failed.
"""
FAILURES = """Failures that no rule had been written from when they were first asked, in no other set. The cause and the
line that explains were written down before that. Rules were then changed with the half `develop` in view, never with
`unseen`. *Known*: with a cause in the vocabulary.
"""
GLANCE = """What it did on logs that nobody had written rules from, when they were first asked: nearly all are pieces of
public logs of other people's machines. The tables below have every set, and the end of the page how each was made.
"""
FAILURES_HEAD = (
    "| public failures | number | first cause right, of those known | of all with a cause | line shown | status 1 "
    "| wrong at .8 or more |\n|---|---|---|---|---|---|---|"
)
HEAD = "| healthy logs | number | blamed | status 1 | windows | blamed | status 1 |\n|---|---|---|---|---|---|---|"


def score_row(name: str, scores: Sequence[dict[str, Any]]) -> str:
    of_windows = [sum(one[f"windows {size}"][n] for one in scores for size in SIZES) for n in range(3)]
    blamed, ended = (sum(one[key] for one in scores) for key in ("blamed", "status"))
    return f"| {name} | {len(scores)} | {blamed} | {ended} | " + " | ".join(f"{n:,}" for n in of_windows) + " |"


def section() -> list[str]:
    """The first part of the accuracy page: the newest sets at a glance, then the scores of every set."""
    sets = _sets()
    own = [path.stem for path in sorted(RECORDED.glob("*.log"))]
    today = [score_log(name, (RECORDED / f"{name}.log").read_bytes(), PAGE_WINDOWS) for name in own]
    return [
        "## At a glance\n",
        GLANCE,
        *_at_a_glance(sets["healthy"], sets["failures"]),
        "",
        "## Healthy logs: is anything blamed?\n",
        INTRODUCTION,
        HEAD,
        *_set_rows(sets["healthy"], score_row),
        score_row("today, what is part of the project of all sets", today),
        "",
        "## Public failures: is the cause named?\n",
        FAILURES,
        FAILURES_HEAD,
        *_set_rows(sets["failures"], failures_row),
        "",
    ]


def how_made() -> list[str]:
    """The last part of the page: where the logs of each set come from, newest first."""
    lines = ["", "## How the sets were made"]
    for kind, title in (("healthy", "Healthy logs"), ("failures", "Public failures")):
        lines += ["", f"### {title}", ""]
        for one in _sets()[kind]:
            if made := one.get("made"):
                lines += textwrap.wrap(f"- {made}", 118, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _sets() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(SETS.read_text())
    return found


def _scores(one: dict[str, Any], row: dict[str, Any]) -> list[dict[str, Any]]:
    """The scores of a set that a row of the page is about. parts: of a set in several parts only the first so many."""
    asked = _rows(ROOT / "tests" / "data" / one["file"])
    asked = [score for score in asked if "when" not in row or score["when"] == row["when"]]
    asked = [score for score in asked if all(score[key] == row[key] for key in FILTERS if key in row)]
    return [score for score in asked if "parts" not in row or score.get("part", 1) <= row["parts"]]


def _set_rows(sets: Sequence[dict[str, Any]], text: Callable[[str, Sequence[dict[str, Any]]], str]) -> Iterator[str]:
    for place, one in enumerate(sets):
        for number, row in enumerate(one["rows"]):
            newest = place == number == 0
            yield text(f"**{row['title']}**" if newest else row["title"], _scores(one, row))


def _at_a_glance(healthy: Sequence[dict[str, Any]], failures: Sequence[dict[str, Any]]) -> list[str]:
    """The first scores of the newest set and of the one before, next to the targets."""
    good, bad = ([_scores(one, one["rows"][0]) for one in sets[:2]] for sets in (healthy, failures))
    lines = (
        ("healthy logs that are blamed", good, lambda s: (sum(one["blamed"] for one in s), len(s)), "none"),
        ("their windows that are blamed", good, _windows_blamed, "none"),
        ("failures: first cause right, of those with a cause in the catalogue", bad, _right_of_known, "85 %"),
        ("failures: first cause right, of all", bad, _right_of_all, "70 %"),
        ("failures: the line that explains is shown", bad, lambda s: (sum(one["line"] for one in s), len(s)), "95 %"),
        ("failures: a wrong cause at .8 or more", bad, lambda s: (sum(one["wrong"] for one in s), len(s)), "none"),
    )
    rows = [
        f"| {title} | {' | '.join(_share(*count(scores)) for scores in both)} | {target} |"
        for title, both, count, target in lines
    ]
    return ["| logs never seen | newest set | the one before | target |", "|---|---|---|---|", *rows]


def _share(count: int, number: int) -> str:
    return f"{count} of {number:,} ({count / max(1, number):.0%})"


def _windows_blamed(scores: Sequence[dict[str, Any]]) -> tuple[int, int]:
    blamed, number = (sum(one[f"windows {size}"][n] for one in scores for size in SIZES) for n in (1, 0))
    return blamed, number


def _right_of_known(scores: Sequence[dict[str, Any]]) -> tuple[int, int]:
    known = [one for one in scores if one.get("decidable", True) and one["keys"]]
    return sum(one["first"] for one in known), len(known)


def _right_of_all(scores: Sequence[dict[str, Any]]) -> tuple[int, int]:
    return _right_of_known(scores)[0], sum(one.get("decidable", True) for one in scores)


def failures_row(name: str, scores: Sequence[dict[str, Any]]) -> str:
    decidable = [one for one in scores if one.get("decidable", True)]
    known = [one for one in decidable if one["keys"]]
    right = sum(one["first"] for one in known)
    shown, ended, wrong = (sum(one[key] for one in scores) for key in ("line", "status", "wrong"))
    of_all = f"{right} of {len(decidable)} ({right / max(1, len(decidable)):.0%})"
    return (
        f"| {name} | {len(scores)} | {right} of {len(known)} ({right / max(1, len(known)):.0%}) | {of_all} "
        f"| {shown} ({shown / max(1, len(scores)):.0%}) | {ended} | {wrong} |"
    )


def main(words: Sequence[str]) -> int:
    chosen = [word for word in words if not word.startswith("--")]
    given = {name: content for name, content in logs().items() if not chosen or name in chosen}
    first = _rows(FIRST)
    if "--first" in words:
        known = {one["log"] for one in first}
        first += [score_log(name, content) for name, content in given.items() if name not in known]
        FIRST.write_text("".join(f"{json.dumps(one)}\n" for one in first), encoding="utf-8")
    today = [score_log(name, content) for name, content in given.items()] if "--first" not in words else []
    print("\n".join([HEAD, score_row("first score", first), *([score_row("today", today)] if today else [])]))
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
