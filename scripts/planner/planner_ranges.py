"""`planner_ranges.py`: the powers of rates.toml's [widths], from every set of published rows, and what they reach.

For every figure and class of model: the power of a range's sides with which nine of ten rows are inside, each source
with the same weight, and the share of rows inside when the power is that of all other sources. Classes lean on all of
them together; one with few sources keeps its range, and none is narrowed: new rows showed that it would be too much.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from planner_fresh import read
from planner_report import DATA, answered
from planner_report_answers import PlannerAnswer
from planner_report_dates import source
from planner_report_rows import SHARED, PlannerCase, load, models_for, of_rows

from sparkwright.domain.model import ModelShape
from sparkwright.planner.speed_rates import width_class, width_power

FIGURES = {
    "decode_tps": "decode",
    "decode_tps_speculative": "drafts",
    "decode_tps_concurrent": "streams",
    "prefill_tps": "prompts",
    "ttft_s": "first",
}
_INSIDE = 0.9
_LEANS = 4  # sources that all classes together count as
_FEWEST = 9  # sources of a class, without the one that is left out
_LEAST = 0.05


@dataclass(frozen=True, slots=True)
class Off:
    """off: the power at which the published figure would be at the edge of the range, before any. wide: log of high
    over low there."""

    source: str
    row: str
    width_class: str
    off: float
    wide: float


def main() -> int:
    cases = every_case()
    answers, bugs = answered(cases)
    for bug in bugs:
        print(f"planner-ranges: {bug}", file=sys.stderr)
    by_id = {case.id: case for case in cases}
    for quantity, figure in FIGURES.items():
        found = [one for answer in answers if answer.quantity == quantity and (one := off_range(answer, by_id, figure))]
        print("\n".join(figure_lines(figure, found)))
    return int(bool(bugs))


def every_case() -> list[PlannerCase]:
    models = models_for(SHARED / "rows.jsonl")
    folder = Path(__file__).with_name("fresh")
    fresh = [case for path in sorted(folder.glob("*.yaml")) for case in of_rows(read(path)[0], models)]
    return [*load(DATA), *fresh]


def off_range(answer: PlannerAnswer, cases: Mapping[str, PlannerCase], figure: str) -> Off | None:
    """None where there is no prediction with a range. Raises nothing for rows without a shape: they have no answer."""
    case = cases[answer.id]
    if not answer.predicted or not answer.low or not answer.high or not isinstance(case.shape, ModelShape):
        return None
    away = math.log(float(answer.published) / answer.predicted)
    side = math.log((answer.high if away > 0 else answer.low) / answer.predicted)
    used = width_power(figure, case.shape)
    if not side:
        return None
    wide = math.log(answer.high / answer.low) / used
    return Off(source(case.row), answer.id, width_class(case.shape), away / side * used, wide)


def powers(found: Sequence[Off]) -> dict[str, float]:
    """The power of each class, and under '' of all."""
    every = _quantile(found)
    made = {"": every}
    for name in {one.width_class for one in found}:
        mine = [one for one in found if one.width_class == name]
        count = len({one.source for one in mine})
        shared = count * math.log(max(_LEAST, _quantile(mine))) + _LEANS * math.log(max(_LEAST, every))
        made[name] = max(1.0, math.exp(shared / (count + _LEANS))) if count >= _FEWEST else 1.0
    return made


def _quantile(found: Sequence[Off]) -> float:
    """The power below which nine of ten are: a source has one vote, shared by its rows, a row's by its figures."""
    rows: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        rows[one.source][one.row].append(one.off)
    votes = sorted((off, 1 / len(mine) / len(offs)) for mine in rows.values() for offs in mine.values() for off in offs)
    reached, total = 0.0, sum(vote for _, vote in votes)
    for off, vote in votes:
        reached += vote
        if reached >= _INSIDE * total:
            return off
    return votes[-1][0] if votes else 1.0


def figure_lines(figure: str, found: Sequence[Off]) -> list[str]:
    """One line a class: its power with all sources; rows inside where a row's own source is left out; the width."""
    full, left = powers(found), defaultdict(lambda: 1.0)
    for name in {one.source for one in found}:
        others = powers([one for one in found if one.source != name])
        for one in found:
            if one.source == name:
                left[name, one.width_class] = others.get(one.width_class, 1.0)
    lines = []
    for name in ("", *sorted(full.keys() - {""})):
        mine = [one for one in found if name in ("", one.width_class)]
        rows: dict[str, list[bool]] = defaultdict(list)
        sources: dict[str, list[float]] = defaultdict(list)
        for one in mine:
            rows[one.row].append(one.off <= left[one.source, one.width_class])
        of_row = {one.row: one.source for one in mine}
        for row, inside in rows.items():
            sources[of_row[row]].append(mean(inside))
        width = math.exp(median(one.wide * full[one.width_class] for one in mine))
        shares = f"{mean(map(mean, rows.values())):.0%} of {len(rows)} rows, {mean(map(mean, sources.values())):.0%}"
        lines.append(f"{figure} {name or 'all'}: {full[name]:.2f}; {shares} of {len(sources)} sources, x{width:.2f}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
