"""`make diagnose-report [DATA=cases.jsonl] [OUT=answers.jsonl]`: `diagnose` checked against logs whose cause is known.

diagnose_report.py [--data FILE] [--out FILE] [--check]. Without --data the shared cases, and
docs/reference/diagnose-accuracy.md is written from them (--check: exit 1 when that page is stale).
OUT gets one JSON object a case: id, ranked (cause key,
confidence, rule code; most likely first), and the same inside a healthy log as `embedded`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from diagnose_report_cases import ROOT, Named, load, name_causes
from diagnose_report_page import report_page, summary

PAGE = ROOT / "docs" / "reference" / "diagnose-accuracy.md"
DATA = ROOT.parent / "shared" / "data" / "failures-dev.jsonl"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="diagnose_report.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=None, help="cases, one JSON object a line")
    parser.add_argument("--out", type=Path, default=None, help="where the answers go, one JSON object a line")
    parser.add_argument("--check", action="store_true", help="exit 1 when docs/reference/diagnose-accuracy.md is stale")
    chosen = parser.parse_args(words)
    data = chosen.data or DATA
    if not data.is_file():
        hint = "the public logs are not part of this project: make diagnose-report DATA=cases.jsonl"
        print(f"diagnose-report: no file {data}\nhint: {hint}", file=sys.stderr)
        return 2
    try:
        cases = load(data)
    except (OSError, ValueError) as error:
        print(f"diagnose-report: {data}: {error}", file=sys.stderr)
        return 2
    alone, inside = ([name_causes(case, embedded) for case in cases] for embedded in (False, True))
    if chosen.out:
        chosen.out.write_text("".join(f"{case_line(a, b)}\n" for a, b in zip(alone, inside, strict=True)))
    print(summary(alone, inside))
    return 0 if chosen.data else write(report_page(alone, inside), chosen.check)


def case_line(alone: Named, inside: Named) -> str:
    return json.dumps({"id": alone.case.id, "ranked": ranked(alone), "embedded": ranked(inside)})


def ranked(answer: Named) -> list[dict[str, object]]:
    return [{"cause_key": key, "confidence": sure, "code": code} for key, sure, code in answer.ranked]


def write(text: str, check: bool) -> int:
    stale = not PAGE.exists() or PAGE.read_text() != text
    if stale and check:
        print(f"{PAGE.relative_to(ROOT)} is stale: make diagnose-report", file=sys.stderr)
        return 1
    if stale:
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
