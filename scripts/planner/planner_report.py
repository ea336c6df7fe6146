"""`make planner-report [DATA=rows.jsonl] [OUT=answers.jsonl]`: the planner's answers to published measurements.

planner_report.py [--data FILE] [--out FILE] [--check]. Without --data the shared rows, and
docs/reference/planner-accuracy.md is written from them (--check: exit 1 when that page is stale).
OUT gets one JSON object a line: id, quantity, predicted,
interval, published, error, reason, kind of attention, conditions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import planner_report_memory as memory
import planner_report_speed as speed
from planner_report_answers import PlannerAnswer
from planner_report_folds import by_model, by_source, left_out
from planner_report_notes import judged, load_notes
from planner_report_rows import SHARED, PlannerCase, load
from planner_report_tables import report_page, summary

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "planner-accuracy.md"
DATA = SHARED / "measurements-dev.jsonl"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="planner_report.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=None, help="rows, one JSON object a line")
    parser.add_argument("--out", type=Path, default=None, help="where the answers go, one JSON object a line")
    parser.add_argument("--check", action="store_true", help="exit 1 when docs/reference/planner-accuracy.md is stale")
    chosen = parser.parse_args(words)
    data = chosen.data or DATA
    if not data.is_file():
        hint = "the published rows are not part of this project: make planner-report DATA=rows.jsonl"
        print(f"planner-report: no file {data}\nhint: {hint}", file=sys.stderr)
        return 2
    try:
        cases = load(data)
    except (OSError, ValueError) as error:
        print(f"planner-report: {data}: {error}", file=sys.stderr)
        return 2
    answers, bugs = answered(cases)
    for bug in bugs:
        print(f"planner-report: {bug}", file=sys.stderr)
    if chosen.out:
        chosen.out.write_text("".join(f"{answer_line(answer)}\n" for answer in answers))
    notes = load_notes()
    apart = [left_out(cases, judged(notes, answers), fold) for fold in (by_source, by_model)]
    print(summary(answers, notes, apart))
    done = 0 if chosen.data else write(report_page(answers, notes, apart), chosen.check)
    return max(done, int(bool(bugs)))


def answered(cases: Sequence[PlannerCase]) -> tuple[list[PlannerAnswer], list[str]]:
    """All answers; and the planner's bugs, each of which costs one row's answers and not the report."""
    found: list[PlannerAnswer] = []
    bugs: list[str] = []
    for case in cases:
        for part in (memory, speed):
            try:
                found += part.answers(case)
            except Exception as error:
                bugs.append(f"{case.id}: a bug: {type(error).__name__}: {error}")
    return found, bugs


def answer_line(answer: PlannerAnswer) -> str:
    interval = None if answer.low is None or answer.high is None else [answer.low, answer.high]
    said = {
        "id": answer.id,
        "quantity": answer.quantity,
        "predicted": answer.predicted,
        "interval": interval,
        "published": answer.published,
        "error": answer.error,
        "reason": answer.reason or None,
        "attention": answer.kind,
        **answer.conditions,
    }
    return json.dumps(said)


def write(text: str, check: bool) -> int:
    stale = not PAGE.exists() or PAGE.read_text() != text
    if stale and not check:
        PAGE.write_text(text)
    if stale:
        print(f"planner-report: {PAGE.relative_to(ROOT)} {'is stale: make planner-report' if check else 'written'}")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
