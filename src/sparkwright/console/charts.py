"""Small pictures as SVG, without a script: a line over time, and a bar."""

from collections.abc import Sequence

from sparkwright.report.markup import Html, html_tag

_WIDTH, _HEIGHT, _POINTS = 240.0, 44.0, 120


def sparkline(points: Sequence[tuple[float, float]], span: float, now: float, label: str) -> Html:
    """The last `span` seconds; '' while there is nothing to draw."""
    kept = _thinned([point for point in points if point[0] >= now - span], span, now)
    if len(kept) < 2:
        return Html(html_tag("svg", class_="spark", viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", aria_hidden="true"))
    top = max(max(value for _, value in kept), 1e-9)
    at = [
        f"{_WIDTH * (1 - (now - when) / span):.1f},{_HEIGHT - 2 - (_HEIGHT - 6) * max(value, 0.0) / top:.1f}"
        for when, value in kept
    ]
    first, last = at[0].partition(",")[0], at[-1].partition(",")[0]
    area = f"{first},{_HEIGHT:g} {' '.join(at)} {last},{_HEIGHT:g}"
    return html_tag(
        "svg",
        html_tag("polygon", points=area),
        html_tag("polyline", points=" ".join(at)),
        class_="spark",
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _thinned(points: Sequence[tuple[float, float]], span: float, now: float) -> list[tuple[float, float]]:
    """The mean of each stretch of time."""
    step = span / _POINTS
    stretches: dict[int, list[tuple[float, float]]] = {}
    for when, value in points:
        stretches.setdefault(int((now - when) / step), []).append((when, value))
    return [
        (sum(when for when, _ in found) / len(found), sum(value for _, value in found) / len(found))
        for _, found in sorted(stretches.items(), reverse=True)
    ]


def bar_picture(part: float, label: str, mark: float | None = None, kind: str = "") -> Html:
    """part, mark: 0 to 1. mark: a limit, drawn as a line."""
    filled = html_tag("rect", class_="filled", width=f"{100 * min(max(part, 0.0), 1.0):.1f}", height="8")
    limit = (
        [html_tag("rect", class_="limit", x=f"{100 * min(max(mark, 0.0), 0.995):.1f}", width=".6", height="8")]
        if mark is not None
        else []
    )
    return html_tag(
        "svg",
        html_tag("rect", class_="whole", width="100", height="8"),
        filled,
        *limit,
        class_=f"bar {kind}".strip(),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )
