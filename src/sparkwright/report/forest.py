"""Scores with their intervals as one picture (SVG, without scripts): a row an outcome, a mark a run."""

from collections.abc import Sequence

from sparkwright.domain.evaluation import Score
from sparkwright.domain.run import Run
from sparkwright.report.markup import Html, html_tag, join_html
from sparkwright.report.texts import letter

_LEFT, _WIDE, _ROW, _EACH = 190, 480, 16, 10
_ENOUGH = 10  # cases below which an interval goes from one end to the other
_LONGEST = 28  # letters of a name


def forest_plot(runs: Sequence[Run]) -> Html:
    """Every outcome with a score of ten cases or more, of all runs; nothing where none has."""
    scores = [
        {one.name: one.score for one in run.evaluation.outcomes if one.score and one.score.of >= _ENOUGH}
        if run.evaluation
        else {}
        for run in runs
    ]
    names = list(dict.fromkeys(name for known in scores for name in known))
    if not names:
        return Html("")
    height = _ROW + _EACH * (len(runs) - 1)
    rows = [_row(name, [known.get(name) for known in scores], height * (place + 1)) for place, name in enumerate(names)]
    whose = "; ".join(f"{letter(place)}: {run.id}" for place, run in enumerate(runs)) if len(runs) > 1 else ""
    box = f"0 0 {_LEFT + _WIDE + 40} {height * (len(names) + 2)}"
    scale = [_scale(share, height * (len(names) + 1)) for share in (0, 25, 50, 75, 100)]
    picture = html_tag(
        "svg", *scale, *rows, viewBox=box, role="img", aria_label="Scores with 95 % intervals", width="100%"
    )
    says = html_tag("p", f"Points: share of good answers; lines: 95 % Wilson intervals. {whose}", class_="says")
    box = html_tag("div", picture, class_="scroll forest", tabindex="0", role="region", aria_label="Scores")
    return html_tag("section", html_tag("h2", "Scores"), says, box, class_="figure wide")


def _row(name: str, scores: Sequence[Score | None], top: int) -> Html:
    label = _text(name[:_LONGEST], _LEFT - 8, top + 4, "end")
    marks = [_mark(score, top + place * _EACH, place, len(scores) > 1) for place, score in enumerate(scores) if score]
    return join_html(label, *marks)


def _mark(score: Score, y: int, place: int, several: bool) -> Html:
    told = f"{score.good} of {score.of}, {100 * score.low:.0f} to {100 * score.high:.0f} %"
    ends = {"x1": _x(score.low), "x2": _x(score.high), "y1": str(y), "y2": str(y)}
    line = html_tag("line", stroke="currentColor", stroke_opacity="0.55", stroke_width="2", **ends)
    point = html_tag("circle", html_tag("title", told), cx=_x(score.share), cy=str(y), r="4", fill="currentColor")
    return join_html(line, point, _text(letter(place), _LEFT + _WIDE + 14, y + 4, "start") if several else Html(""))


def _scale(share: int, y: int) -> Html:
    x = _x(share / 100)
    line = html_tag("line", x1=x, x2=x, y1="4", y2=str(y - 6), stroke="currentColor", stroke_opacity="0.18")
    return join_html(line, _text(f"{share} %", float(x), y + 8, "middle"))


def _text(text: str, x: float, y: float, anchor: str) -> Html:
    return html_tag("text", text, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, font_size="11", fill="currentColor")


def _x(share: float) -> str:
    return f"{_LEFT + _WIDE * share:.1f}"
