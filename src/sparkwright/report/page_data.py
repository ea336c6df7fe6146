"""The numbers of a page as JSON inside of it."""

import json
from collections.abc import Sequence
from typing import Any

from sparkwright.report.series import Axis, Curve, Plot
from sparkwright.report.timelines import Timeline

# Inside <script>, these would end the element, open a comment, or break a line of old JavaScript.
_UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def data_json(names: Sequence[str], plots: Sequence[Plot], requests: Sequence[Timeline]) -> str:
    """Text that no content can turn into markup."""
    tree = {"runs": list(names), "plots": [plot_tree(plot) for plot in plots], "timelines": _timelines(requests)}
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_UNSAFE)


def plot_tree(plot: Plot) -> dict[str, Any]:
    return {
        "id": plot.id,
        "title": plot.title,
        "x": _axis(plot.x),
        "y": _axis(plot.y),
        "limits": [{"name": name, "y": value} for name, value in plot.limits],
        "curves": [_curve(curve) for curve in plot.curves],
    }


def _axis(axis: Axis) -> dict[str, Any]:
    return {"label": axis.label, "unit": axis.unit, "spread": axis.spread, "each": axis.each}


def _curve(curve: Curve) -> dict[str, Any]:
    """Points as [x, value, low, high, count]; thin lines as [x, value]."""
    points = [[p.x, p.y.value] if curve.thin else [p.x, p.y.value, p.y.low, p.y.high, p.count] for p in curve.points]
    return {"name": curve.name, "run": curve.run, "style": curve.style, "thin": curve.thin, "points": points}


def _timelines(requests: Sequence[Timeline]) -> list[dict[str, Any]]:
    """Times as steps of 0.1 ms from one read to the next, totals as steps, too: half the size."""
    return [
        {
            "run": one.run,
            "level": one.level,
            "label": one.label,
            "exact": one.exact,
            "at": _steps([round(at * 10_000) for at in one.at]),
            "total": _steps(one.total),
        }
        for one in requests
    ]


def _steps(values: Sequence[int]) -> list[int]:
    return [value - before for before, value in zip((0, *values[:-1]), values, strict=True)]
