"""The answers as a page: docs/reference/planner-accuracy.md. Made of the rows only, so that its age can be checked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from planner_report_answers import PlannerAnswer
from planner_report_loads import load_table
from planner_report_notes import Note, judged, note_about
from planner_report_stats import NO_TO_WHAT_RAN, TARGETS, ErrorFigures, ErrorTarget, beyond_limit, figures, targets_met

MADE = "<!-- Made by `make planner-report`; edit scripts/planner/planner_report*.py or the planner instead. -->"
INTRO = """
## How it is measured

How far the planner's answers are from what others measured on GB10 machines and from our own runs. Each published row
is turned into a recipe and planned like any other; nothing is fitted to a row or a model's name. But rates, ranges and
reserves were chosen with these rows in view. So the next table shows what they give when the rows of a source, or of a
model, are taken away: each quantity's level and the width of its ranges are fitted to the other rows only, each source
with the same weight, and compared with those that were left out. The width is what a source not seen yet needs for nine
of its ten rows; with fewer than ten sources none is narrowed. KV tokens follow from rules and dimensions alone.

An error is (predicted - published) / published; median and 90th percentile are of its size, over rows: one with a curve
of many figures counts once, with their median. `inside` is the share of published figures within the interval that the
planner gives, in the mean of rows, and in brackets how many times its low end the high end is, in the median: a range
is meant to hold nine of ten. The right columns of the tables by attention are sparkrun 0.2.40's estimator on the same
rows (its arithmetic, written again in scripts/planner/planner_report_peer.py); it does not estimate speed.

`Fits` has three verdicts: fits at the low end of the pool's range, may not fit, does not fit at its high end. Unsafe is
what fits and failed. Rows that may not fit are counted, and those without a verdict: their source leaves out fraction
or limits, or the context where the model's longest does not fit.

The rows are not part of this project; `make planner-report DATA=rows.jsonl OUT=answers.jsonl` makes the same from any
file of their form. Published figures contradict each other: one unchanged configuration gave KV pools 7 to 16 % apart
from boot to boot. A row that contradicts itself is named below with the arithmetic that shows it, and is not compared
with a target.

What a row leaves out is filled in by rules that hold for all rows: the engine's own defaults; the engine's version by
the concurrency that it prints, else by the row's date; a node of 121.69 GiB of which 10 are taken; of several ways to
write a checkpoint's weights the one that comes nearest to its published size; a fraction that is not given may be any
that fits. Dimensions come from published configs, read like a user's config.json. Where a source's aggregate is of
whole requests that begin together, so is the planner's: their prompts are read meanwhile.
"""
_Lines = Iterator[str]
_COLUMNS = {
    "quantity": "quantity",
    "first": "first run",
    "looked": "after, half that was looked at",
    "kept": "after, half that was not",
    "after": "after, all looked at",
}
_FRESH = Path(__file__).with_name("planner_report_fresh.yaml")


def report_page(
    answers: Sequence[PlannerAnswer], notes: Sequence[Note], apart: Sequence[Sequence[PlannerAnswer]] = ((), ())
) -> str:
    """apart: the answers without what was fitted to the row's source, and to its model."""
    kept = judged(notes, answers)
    parts = (
        _apart(kept, apart),
        _summary(kept, answers),
        load_table(),
        _kinds(kept),
        _beyond(kept, notes),
        _left_out(answers, notes),
        _silent(answers),
        _fresh(),
    )
    head = ["# How accurate the planner is", "", MADE, "", *_at_a_glance(), INTRO]
    return "\n".join([*head, *(line for part in parts for line in part)])


def summary(
    answers: Sequence[PlannerAnswer], notes: Sequence[Note], apart: Sequence[Sequence[PlannerAnswer]] = ((), ())
) -> str:
    """The first two tables alone, for the terminal."""
    kept = judged(notes, answers)
    return "\n".join((*_apart(kept, apart), *_summary(kept, answers)))


def _at_a_glance() -> _Lines:
    """The first answers of the newest set that asked for a quantity and of the one before, next to the targets."""
    wanted = {target.title: _asked(name, target) for name, target in TARGETS.items()}
    answered: dict[str, list[str]] = {}
    for one in reversed([one for one in _sets() if str(one["when"]).endswith("set")]):
        for row in one["figures"]:
            if row["quantity"] in wanted or "unsafe" in row["quantity"]:
                answered.setdefault(row["quantity"], []).append(row["first"])
    yield "## At a glance\n"
    yield "What it said the first time of published figures that were new to it: median, 90 % and inside (rows)."
    yield "The tables further down are about rows that it was made with; the end of the page has every new set.\n"
    yield "| quantity | newest rows | the ones before | target |"
    yield "|---|---|---|---|"
    for name, (first, before) in ((name, (*firsts, "no row")[:2]) for name, firsts in answered.items()):
        target = wanted.get(name, f"none unsafe, under {NO_TO_WHAT_RAN:.0%} refused" if "unsafe" in name else "none")
        yield f"| {name} | {first} | {before} | {target} |"


def _sets() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(_FRESH.read_text())
    return found


def _fresh() -> _Lines:
    """The planner's first answers on rows that were new to it, as written down that day, newest first."""
    yield "## On rows that were new\n"
    yield "Median, 90 % and inside (rows), as written down on the day; the first run was before any change."
    for one in reversed(_sets()):
        yield f"\n{one['when']}, at revision {one['revision']}: {one['rows']}\n"
        columns = [name for name in _COLUMNS if name in one["figures"][0]]
        yield "| " + " | ".join(_COLUMNS[name] for name in columns) + " |"
        yield "|---" * len(columns) + "|"
        yield from ("| " + " | ".join(row[name] for name in columns) + " |" for row in one["figures"])
        yield ""
        yield from (f"- {note}" for note in one["notes"])
    yield ""


def _apart(kept: Sequence[PlannerAnswer], apart: Sequence[Sequence[PlannerAnswer]]) -> _Lines:
    """Each quantity as shipped, without the row's source, without its model."""
    yield "## On sources and models that had no part in it\n"
    yield "| quantity | rows | median, 90 %, inside | without its source | without its model |"
    yield "|---|---|---|---|---|"
    for name, target in TARGETS.items():
        shown = [figures([a for a in answers if a.quantity == name]) for answers in (kept, *apart)]
        if shown[0].answered and not shown[0].yes_no:
            yield f"| {target.title} | {shown[0].rows} | {' | '.join(map(_three, shown))} |"
    yield ""


def _three(found: ErrorFigures) -> str:
    return ", ".join(part.strip() for part in _results(found).split("|"))


def _summary(kept: Sequence[PlannerAnswer], everything: Sequence[PlannerAnswer]) -> _Lines:
    yield "## In short\n"
    yield "| quantity | target | figures (rows) | median | 90 % | inside | target met | all rows | not predicted |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, target in TARGETS.items():
        mine, every = ([a for a in answers if a.quantity == name] for answers in (kept, everything))
        if every:
            found, whole = figures(mine), figures(every)
            yield (
                f"| {target.title} | {_asked(name, target)} | {found.answered} ({found.rows}) | {_results(found)} | "
                + (f"{_said(targets_met(target, found))} | {_briefly(whole)} | {whole.count - whole.answered or ''} |")
            )
    yield ""
    yield "`all rows`: median, 90 % and figures with the rows that contradict themselves."
    yield ""


def _kinds(kept: Sequence[PlannerAnswer]) -> _Lines:
    yield "## By kind of attention\n"
    for name, target in TARGETS.items():
        mine = [a for a in kept if a.quantity == name and a.predicted is not None]
        if mine:
            yield from _by_kind(target, mine)


def _by_kind(target: ErrorTarget, answers: Sequence[PlannerAnswer]) -> _Lines:
    compared = any(a.peer is not None for a in answers)
    yield f"### {target.title}\n"
    other = " | sparkrun's: figures | median | 90 % |" if compared else " |"
    yield f"| attention | figures (rows) | median | 90 % | inside{other}"
    yield "|---|---|---|---|---|" + ("---|---|---|" if compared else "")
    groups = {kind: [a for a in answers if a.kind == kind] for kind in sorted({a.kind for a in answers})}
    for kind, mine in {**groups, "all": list(answers)}.items():
        found = figures(mine)
        theirs = f" {_peer(figures(mine, peer=True))} |" if compared else ""
        yield f"| {kind} | {found.answered} ({found.rows}) | {_results(found)} |{theirs}"
    yield ""


def _beyond(kept: Sequence[PlannerAnswer], notes: Sequence[Note]) -> _Lines:
    """One line a row and quantity: the worst of its figures."""
    yield "## Rows beyond the limit\n"
    yield "The limit is the target's for 90 % of rows; for speeds, the planner's own interval. The worst figure of a"
    yield "row and quantity is shown.\n"
    grouped: dict[tuple[str, str], list[PlannerAnswer]] = defaultdict(list)
    for answer in beyond_limit(kept):
        grouped[answer.quantity, answer.id].append(answer)
    for name, target in TARGETS.items():
        mine = [group for (quantity, _), group in grouped.items() if quantity == name]
        if mine:
            yield f"### {target.title}\n"
            yield "| row | published | predicted | error | why |"
            yield "|---|---|---|---|---|"
            yield from (_line(group, notes) for group in sorted(mine, key=_worst, reverse=True))
            yield ""


def _line(group: Sequence[PlannerAnswer], notes: Sequence[Note]) -> str:
    answer = max(group, key=lambda a: abs(a.error or 0.0))
    said = note_about(notes, answer)
    more = f" ({len(group)} figures)" if len(group) > 1 else ""
    where = ", ".join(f"{name} {value:,}" if not isinstance(value, str) else value for name, value in _told(answer))
    shown = f"{_value(answer.published)}{f' ({where})' if where else ''}"
    why = said.why if said else "not explained"
    return f"| {answer.id}{more} | {shown} | {_value(answer.predicted)} | {_signed(answer)} | {why} |"


def _told(answer: PlannerAnswer) -> list[tuple[str, float | str]]:
    return [(name, value) for name, value in answer.conditions.items() if not (name == "concurrency" and value == 1)]


def _worst(group: Sequence[PlannerAnswer]) -> float:
    return max(abs(a.error or 0.0) for a in group)


def _left_out(answers: Sequence[PlannerAnswer], notes: Sequence[Note]) -> _Lines:
    yield "## Rows that contradict themselves\n"
    yield "Not compared with a target. Listed is what is beyond the limit.\n"
    yield "| row | quantity | published | predicted | error | why |"
    yield "|---|---|---|---|---|---|"
    shown: dict[tuple[str, str], list[PlannerAnswer]] = defaultdict(list)
    for answer in answers:
        said = note_about(notes, answer)
        if said and said.contradicts and beyond_limit([answer]):
            shown[answer.id, answer.quantity].append(answer)
    for (row, quantity), group in shown.items():
        a = max(group, key=lambda one: abs(one.error or 0.0))
        said = note_about(notes, a)
        why = " ".join((said.why, *(f"`{line}`" for line in said.shows))) if said else ""
        yield f"| {row} | {quantity} | {_value(a.published)} | {_value(a.predicted)} | {_signed(a)} | {why} |"
    yield ""


def _silent(answers: Sequence[PlannerAnswer]) -> _Lines:
    yield "## Not predicted\n"
    yield "| quantity | figures | reason |"
    yield "|---|---|---|"
    counted = Counter((a.quantity, a.reason) for a in answers if a.predicted is None)
    for (quantity, reason), count in sorted(counted.items()):
        yield f"| {quantity} | {count} | {reason} |"
    yield ""


def _asked(name: str, target: ErrorTarget) -> str:
    if name == "fits":
        return f"none unsafe, under {NO_TO_WHAT_RAN:.0%} refused that ran"
    said = [f"median < {target.median:.1%}"] if target.median is not None else []
    said += [f"90 % < {target.ninety:.0%}"] if target.ninety is not None else []
    return ", ".join([*said, *([f"{target.inside:.0%} inside"] if target.inside is not None else [])]) or "none"


def _results(found: ErrorFigures) -> str:
    if found.yes_no:
        return f"{found.unsafe} unsafe | {found.refused} of {found.ran} refused that ran | "
    width = "" if found.width is None else f" (x{found.width:.2f})"
    return f"{_percent(found.median)} | {_percent(found.ninety)} | {_percent(found.inside, 0)}{width}"


def _briefly(found: ErrorFigures) -> str:
    if found.yes_no:
        return (
            f"{found.unsafe} unsafe, {found.refused} refused; {found.may} may not fit, {found.silent} not judged, "
            f"{found.passed_failed} of these failed"
        )
    return f"{_percent(found.median)}, {_percent(found.ninety)}, {found.answered}"


def _peer(found: ErrorFigures) -> str:
    if not found.answered:
        return " | | "
    if found.yes_no:
        return f"{found.answered} | {found.unsafe} unsafe | {found.refused} refused that ran"
    return f"{found.answered} | {_percent(found.median)} | {_percent(found.ninety)}"


def _percent(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}%}"


def _said(value: bool | None) -> str:
    return {True: "yes", False: "**no**", None: ""}[value]


def _signed(answer: PlannerAnswer) -> str:
    return "" if answer.error is None else f"{answer.error:+.1%}"


def _value(value: float | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return {True: "fits", False: "does not fit", None: ""}[value]
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"
