"""`diagnose` scored on logs of programs that no cause was written for (tests/data/logs-unknown).

diagnose_unknown.py [--first] [SET...]. Prints how often the explaining line is shown, and the mechanism is right.
--first: write the first score of the third set to third.jsonl, once; it never changes when the rules do.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparkwright.app.diagnose.examine import examine
from sparkwright.domain.diagnosis import CONFIDENT

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "tests" / "data" / "logs-unknown"
FIRST = LOGS / "third.jsonl"
YEAR = 2026


def score_part(part: str) -> list[dict[str, Any]]:
    """The results of a set: shown and named for each log. kind: several mechanisms may be right, `none`: no one
    fits."""
    truth = tomllib.loads((LOGS / "truth.toml").read_text(encoding="utf-8"))[part]
    return [_score(part, name, line, kind) for name, (line, kind) in sorted(truth.items())]


def _score(part: str, name: str, line: str, kind: str) -> dict[str, Any]:
    path = LOGS / (f"third-{name}.log" if part == "third" else f"{name}.log")
    found = examine([(name, [path.read_bytes()])], YEAR, {})
    why, keys = found.explanation, [cause.key for cause in found.named]
    shown = [proof.text for cause in found.named[:1] for proof in cause.proof] + ([why.line.text] if why else [])
    of = keys[:1] or [why.mechanism if why else ""]
    right = of[0] in ("", "uncaught") and not keys if kind == "none" else kind == "" or of[0] in kind.split("|")
    return {
        "log": name,
        "line": any(line in text for text in shown),
        "mechanism": right,
        "found": of[0],
        "confidence": found.causes[0].confidence if keys else 0.0,
        "resembles": [cause.key for cause in found.causes if cause.resembles],
    }


def first_scores() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FIRST.read_text(encoding="utf-8").splitlines()] if FIRST.exists() else []


def score_row(name: str, scores: Sequence[dict[str, Any]]) -> str:
    line, mechanism, alike = (sum(bool(one[key]) for one in scores) for key in ("line", "mechanism", "resembles"))
    wrong = sum(one["confidence"] >= CONFIDENT and not one["mechanism"] for one in scores)
    return f"| {name} | {len(scores)} | {line} | {mechanism} | {wrong} | {alike} |"


def main(words: list[str]) -> int:
    if "--first" in words and not FIRST.exists():
        FIRST.write_text("".join(f"{json.dumps(one)}\n" for one in score_part("third")), encoding="utf-8")
    print("| set | logs | line shown | mechanism right | confident and wrong | resemblances |")
    print(score_row("third, first score", first_scores()))
    for part in [word for word in words if not word.startswith("--")] or ["first", "second", "third"]:
        print(score_row(part, score_part(part)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
