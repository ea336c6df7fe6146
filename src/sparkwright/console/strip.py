"""The last 24 hours of a deployment as a strip: one row a quantity, one column a quarter of an hour to point at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from sparkwright.console.figures import number
from sparkwright.domain.history import Minute, RequestSpan
from sparkwright.domain.live import OVER, SERVING
from sparkwright.domain.units import GIB, duration
from sparkwright.report.markup import Html, html_tag

SPAN, STEP = 24 * 3600, 300
_COLUMNS, _POINTS, _HOURS = 96, SPAN // STEP, 4
_WIDTH, _HEIGHT = 288.0, 30.0
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class StripRow:
    """top: the axis ends here; it begins at 0. text: a value as a person reads it."""

    name: str
    values: Values
    text: Callable[[float], str]
    top: float = 0.0

    @property
    def known(self) -> list[float]:
        return [value for value in self.values if value is not None]


def day_strip(
    name: str, minutes: Sequence[Minute], spans: Sequence[RequestSpan], now: float, pointed: bool = True
) -> Html:
    """minutes, spans: of the last day, oldest first. Gaps stay gaps. pointed: with what a mouse shows."""
    end = int(now - now % STEP) + STEP
    times = range(end - SPAN, end, STEP)
    slots = {at: list(group) for at, group in groupby(minutes, key=lambda one: one.at - one.at % STEP)}
    states = [_state(slots.get(at, ())) for at in times]
    rows = [row for row in _rows(slots, {one.at: one for one in spans}, times) if row.known]
    head = html_tag("h2", "Last 24 hours", html_tag("span", f" of {name}", class_="soft"), id=f"day-{name}")
    if not any(states):
        return html_tag(
            "section", head, html_tag("p", "Nothing is recorded yet: a minute after a start it is.", class_="soft")
        )
    columns = _columns(times, states, rows, now) if pointed else ""
    plots = html_tag("div", _states(states), *map(_plot, rows), columns, class_="plots")
    table = html_tag(
        "details", html_tag("summary", "The same as a table, by the hour"), _table(times, states, rows, now)
    )
    return html_tag("section", head, plots, _axis(), table, class_="day", aria_labelledby=f"day-{name}")


def _rows(slots: dict[int, list[Minute]], spans: dict[int, RequestSpan], times: range) -> Iterator[StripRow]:
    def minutes(read: Callable[[Minute], float | None]) -> list[float | None]:
        return [_mean(map(read, slots.get(at, ()))) for at in times]

    def requests(read: Callable[[RequestSpan], float | None]) -> list[float | None]:
        return [read(spans[at]) if at in spans else None for at in times]

    yield StripRow("tokens/s", minutes(lambda one: one.decode), lambda value: f"{number(value, 1)} tokens/s")
    yield StripRow("first token", requests(lambda one: one.first), duration)
    yield StripRow("time per token", requests(lambda one: one.per_token), lambda value: f"{1000 * value:.0f} ms")
    yield StripRow(
        "failed, refused", requests(lambda one: float(one.failed + one.refused)), lambda value: f"{value:.0f} requests"
    )
    total = max((node.total or 0.0 for group in slots.values() for one in group for node in one.nodes), default=0.0)
    yield StripRow("least memory", minutes(_least), lambda value: f"{value / GIB:.1f} GiB", total)
    yield StripRow("hottest GPU", minutes(_hottest), lambda value: f"{value:.0f} °C", 100.0)
    yield StripRow("power of all GPUs", minutes(_power), lambda value: f"{value:.0f} W")


def _least(minute: Minute) -> float | None:
    return min((node.available for node in minute.nodes if node.available is not None), default=None)


def _hottest(minute: Minute) -> float | None:
    return max((node.temperature for node in minute.nodes if node.temperature is not None), default=None)


def _power(minute: Minute) -> float | None:
    """Unknown where it is for any node: a part of the sum would look like less."""
    watts = [node.power for node in minute.nodes]
    known = [value for value in watts if value is not None]
    return sum(known) if known and len(known) == len(watts) else None


def _mean(values: "Iterator[float | None] | map[float | None]") -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _state(minutes: Sequence[Minute]) -> str:
    """The worst of five minutes; '' where nothing was recorded."""
    return max((one.state for one in minutes), key=_badness, default="")


def _badness(state: str) -> int:
    return 3 if state in OVER else 0 if state == "ready" else 1 if state in SERVING else 2


_KINDS = ("good", "doubt", "busy", "bad")


def _states(states: Sequence[str]) -> Html:
    cells: list[Html] = []
    at = 0
    for state, group in groupby(states):
        width = len(list(group))
        if state:
            kind = _KINDS[_badness(state)]
            cells.append(html_tag("rect", class_=kind, x=f"{at}", width=f"{width}", height="10"))
        at += width
    seen = sum(bool(state) for state in states)
    good = sum(state == "ready" for state in states)
    picture = html_tag(
        "svg",
        *cells,
        class_="states",
        viewBox=f"0 0 {_POINTS} 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"state: ready in {good} of {seen} stretches of five minutes that were recorded",
    )
    return html_tag(
        "div", html_tag("span", "state"), picture, html_tag("span", f"ready {good / max(seen, 1):.0%}"), class_="plot"
    )


def _plot(row: StripRow) -> Html:
    peak = max(row.known)
    top = row.top or peak or 1.0
    lines = [
        html_tag(
            "polyline", points=" ".join(f"{x},{_HEIGHT - 1 - (_HEIGHT - 3) * min(y / top, 1.0):.1f}" for x, y in part)
        )
        for part in _parts(row.values)
    ]
    last = row.text(row.known[-1])
    extreme = f"peak {row.text(peak)}" if row.name != "least memory" else f"low {row.text(min(row.known))}"
    picture = html_tag(
        "svg",
        *lines,
        class_="line",
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{row.name}: {extreme}, last {last}; the axis goes from 0 to {row.text(top)}",
    )
    return html_tag("div", html_tag("span", row.name), picture, html_tag("span", extreme), class_="plot")


def _parts(values: Values) -> Iterator[list[tuple[float, float]]]:
    """Stretches without a gap; a single point is drawn as a short line."""
    for known, group in groupby(enumerate(values), key=lambda pair: pair[1] is not None):
        if known:
            part = [(x + 0.5, y) for x, y in group if y is not None]
            yield part if len(part) > 1 else [(part[0][0] - 0.5, part[0][1]), (part[0][0] + 0.5, part[0][1])]


def _columns(times: range, states: Sequence[str], rows: Sequence[StripRow], now: float) -> Html:
    """The columns under the mouse: each tells its quarter of an hour."""
    width = _POINTS // _COLUMNS
    cells = []
    for at in range(0, _POINTS, width):
        told = _told(slice(at, at + width), states, rows)
        ago = duration(max(now - times[at], 0.0))
        cells.append(html_tag("i", title=f"{ago} ago: {told}"))
    return html_tag("div", *cells, class_="columns", aria_hidden="true")


def _told(part: slice, states: Sequence[str], rows: Sequence[StripRow]) -> str:
    state = max(states[part], key=lambda one: _badness(one) if one else -1)
    found = [(row, _mean(iter(row.values[part]))) for row in rows]
    said = [f"{row.name} {row.text(value)}" for row, value in found if value is not None]
    return "; ".join([state, *said]) if state or said else "nothing was recorded"


def _axis() -> Html:
    ticks = [html_tag("span", f"-{hours} h" if hours else "now") for hours in range(24, -1, -_HOURS)]
    return html_tag(
        "div", html_tag("span"), html_tag("div", *ticks), html_tag("span"), class_="plot axis", aria_hidden="true"
    )


def _table(times: range, states: Sequence[str], rows: Sequence[StripRow], now: float) -> Html:
    heads = ("hours ago", "state", *(row.name for row in rows))
    head = html_tag("thead", html_tag("tr", *(html_tag("th", name, scope="col") for name in heads)))
    per_hour, body = 3600 // STEP, []
    for hour in range(24):
        part = slice(_POINTS - (hour + 1) * per_hour, _POINTS - hour * per_hour)
        state = max(states[part], key=lambda one: _badness(one) if one else -1)
        means = [(row, _mean(iter(row.values[part]))) for row in rows]
        if state:
            cells = (html_tag("td", "–" if value is None else row.text(value)) for row, value in means)
            body.append(
                html_tag("tr", html_tag("th", f"{hour} to {hour + 1}", scope="row"), html_tag("td", state), *cells)
            )
    table = html_tag("table", head, html_tag("tbody", *body))
    return html_tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="The last day by the hour")
