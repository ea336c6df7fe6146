"""`make diagnose-fresh`: `diagnose` scored on failures that no rule was written for (tests/data/failures-fresh).

diagnose_fresh.py [--data FOLDER] [--first | --page | --half develop|unseen]. Prints today's and the first score.
--first: score the cases that first.jsonl lacks and add them; rows already there never change.
--page: write docs/reference/diagnose-fresh.md from first.jsonl.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnose_fresh_page import HEAD, fresh_page, score_row

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.load import families
from sparkwright.domain.diagnosis import CONFIDENT, Diagnosis

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "failures-fresh"
NEWER = DATA.with_name("failures-vllm-0.33")
PAGE = ROOT / "docs" / "reference" / "diagnose-fresh.md"
YEAR = 2026
FAMILY = {cause.key: family for family, causes in families().items() for cause in causes}


@dataclass(frozen=True, slots=True)
class FreshCase:
    """keys: each of them is right; none: the catalogue has no cause for it. line: part of the line that explains it."""

    id: str
    program: str
    version: str
    half: str
    family: str
    keys: tuple[str, ...]
    line: str
    logs: tuple[str, ...]
    folder: Path = DATA

    def text(self) -> list[tuple[str, bytes]]:
        return [(Path(name).name.removesuffix(".gz"), _content(self.folder / name)) for name in self.logs]


def load(folder: Path = DATA) -> list[FreshCase]:
    rows = map(json.loads, (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines())
    return [_case(found, folder) for found in rows]


def score_case(case: FreshCase) -> dict[str, Any]:
    """The causes that `diagnose` names, compared with the truth."""
    found = examine([(name, [content]) for name, content in case.text()], YEAR, {})
    named = [(cause.key, cause.confidence) for cause in found.causes]
    right = [key in case.keys for key, _ in named]
    accepted = {case.family, *(FAMILY.get(key) for key in case.keys)}
    shown = [proof for cause in found.causes[:3] for proof in cause.proof]
    why = found.explanation
    shown += [line for line in (why.line, why.then) if line] if why else []
    return {
        "id": case.id,
        "program": case.program,
        "half": case.half,
        "known": bool(case.keys),
        "named": named,
        "harmless": bool(found.harmless),
        "first": right[:1] == [True],
        "three": any(right[:3]),
        "family": _family(found) in accepted,
        "wrong": bool(named) and not right[0] and named[0][1] >= CONFIDENT,
        "line": any(case.line.lower() in proof.text.lower() for proof in shown),
    }


def _family(found: Diagnosis) -> str:
    """The answer's family: of the cause named first; if it only resembles one, the likeliest of the line that
    explains."""
    of_line = found.explanation.families[:1] if found.explanation else ()
    if of_line and not found.named:
        return of_line[0]
    return FAMILY.get(found.causes[0].key, "") if found.causes else ""


def first_scores(folder: Path = DATA) -> list[dict[str, Any]]:
    path = folder / "first.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="diagnose_fresh.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the cases, failures-fresh if left out")
    parser.add_argument("--first", action="store_true", help="add first scores of new cases; old ones stay")
    parser.add_argument("--page", action="store_true", help="write docs/reference/diagnose-fresh.md")
    parser.add_argument("--half", choices=("develop", "unseen"), help="only this half, and its misses if it is develop")
    chosen = parser.parse_args(words)
    first = first_scores(chosen.data)
    if chosen.first:
        known = {one["id"] for one in first}
        first += [score_case(case) for case in load(chosen.data) if case.id not in known]
        lines = (json.dumps(one) for one in sorted(first, key=lambda one: str(one["id"])))
        (chosen.data / "first.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if chosen.page:
        PAGE.write_text(fresh_page(first_scores(), load(), first_scores(NEWER)), encoding="utf-8")
    if not chosen.first and not chosen.page:
        report(first, load(chosen.data), chosen.half)
    return 0


def report(first: Sequence[dict[str, Any]], cases: Iterable[FreshCase], half: str | None) -> None:
    wanted: Callable[[str], bool] = lambda name: half in (None, name)  # noqa: E731
    today = [score_case(case) for case in cases if wanted(case.half)]
    print(HEAD)
    print(score_row("first score", [one for one in first if wanted(one["half"])]))
    print(score_row("today", today))
    if half == "develop":
        print("\n".join(misses(today)))


def misses(scores: Iterable[dict[str, Any]]) -> list[str]:
    wrong = [one for one in scores if (one["known"] and not one["first"]) or (not one["known"] and one["named"])]
    return [
        f"{one['id']}: {', '.join(f'{key} {sure:.2f}' for key, sure in one['named']) or 'nothing'}" for one in wrong
    ]


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _case(found: dict[str, Any], folder: Path) -> FreshCase:
    names = ("id", "program", "version", "half", "family", "line")
    texts = {name: found[name] for name in names}
    return FreshCase(**texts, keys=tuple(found["keys"]), logs=tuple(found["logs"]), folder=folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
