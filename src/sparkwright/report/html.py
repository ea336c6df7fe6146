"""A report as one HTML file that needs no network."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.resources import files
from operator import itemgetter
from typing import Any

from sparkwright.domain.run import Run, Scrape
from sparkwright.domain.summary import Comparison, Interval, RunSummary
from sparkwright.domain.units import gib, percent
from sparkwright.report.agentic import turn_plot
from sparkwright.report.markup import Html, html_tag, join_html
from sparkwright.report.page_parts import compared, head_of, plot_section, run_details, timeline_section
from sparkwright.report.series import Axis, Curve, Plot, Point, depth_plots, load_plots
from sparkwright.report.tables import run_labels
from sparkwright.report.texts import letter
from sparkwright.report.timelines import Timeline, timelines

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
        "x": asdict(plot.x),
        "y": asdict(plot.y),
        "limits": [{"name": name, "y": value} for name, value in plot.limits],
        "curves": [_curve(curve) for curve in plot.curves],
    }


def _curve(curve: Curve) -> dict[str, Any]:
    """Points as [x, value, low, high, count]; thin lines as [x, value]."""
    points = [[p.x, p.y.value] if curve.thin else [p.x, p.y.value, p.y.low, p.y.high, p.count] for p in curve.points]
    return {"name": curve.name, "run": curve.run, "style": curve.style, "thin": curve.thin, "points": points}


def _timelines(requests: Sequence[Timeline]) -> list[dict[str, Any]]:
    """Times as steps of 0.1 ms from one read to the next, totals as steps, too: half the size."""
    found = []
    for one in requests:
        at, total = _steps([round(at * 10_000) for at in one.at]), _steps(one.total)
        head = {"run": one.run, "level": one.level, "label": one.label, "exact": one.exact}
        found.append({**head, "at": at, "total": total})
    return found


def _steps(values: Sequence[int]) -> list[int]:
    return [value - before for before, value in zip((0, *values[:-1]), values, strict=True)]


_MOST = 300
_LEAST_KV = 1.0  # percent in use: below it the plot is empty
_LEAST_CHANGE = 0.01  # of the memory available: below it the plot is a flat line
_TIME = Axis("time since the run began", "s")


def resource_plots(runs: Sequence[Run], names: Sequence[str]) -> list[Plot]:
    """KV cache in use, requests waiting, and memory available by node; only what was seen and changed."""
    kv = _figure_curves(runs, names, "kv_cache_usage", 100.0)
    waiting = _figure_curves(runs, names, "requests_waiting", 1.0)
    memory = []
    for number, run in enumerate(runs):
        nodes = dict.fromkeys(node for _, scrape in scrapes(run) for node in scrape.memory)
        for style, node in enumerate(nodes):
            seen = [(at, float(scrape.memory[node])) for at, scrape in scrapes(run) if node in scrape.memory]
            name = f"{node}, {names[number]}" if len(runs) > 1 else node
            memory.append(Curve(name, number, style, _points(seen, min), True))
    plots = []
    if (most := max(_values(kv), default=0.0)) >= _LEAST_KV:
        says = f"At most {percent(most / 100) if most >= 10 else f'{most:.1f} %'} of the KV cache was in use."
        plots.append(Plot("kv-time", "KV cache during the run", _TIME, Axis("in use", "%"), kv, says))
    if any(_values(waiting)):
        plots.append(Plot("waiting-time", "Requests waiting in the server", _TIME, Axis("requests"), waiting))
    if memory and min(_values(memory)) < (1 - _LEAST_CHANGE) * max(_values(memory)):
        least, name = min(((point.y.value, one.name) for one in memory for point in one.points), key=itemgetter(0))
        says, axis = f"Least memory available: {gib(least)} on {name}.", Axis("available", "B")
        plots.append(Plot("memory-time", "Memory during the run", _TIME, axis, tuple(memory), says))
    return plots


def _values(curves: Sequence[Curve]) -> list[float]:
    return [point.y.value for curve in curves for point in curve.points]


def _figure_curves(runs: Sequence[Run], names: Sequence[str], word: str, scale: float) -> tuple[Curve, ...]:
    curves = []
    for number, run in enumerate(runs):
        seen = [(at, scrape.figures[word] * scale) for at, scrape in scrapes(run) if word in scrape.figures]
        if seen:
            curves.append(Curve(names[number] if len(runs) > 1 else "server", number, 0, _points(seen, max), True))
    return tuple(curves)


def scrapes(run: Run) -> Iterator[tuple[float, Scrape]]:
    """The scrapes with seconds since the run began."""
    for level in sorted(run.levels, key=lambda level: level.began):
        yield from ((level.began + scrape.at - run.began, scrape) for scrape in level.scrapes)


def _points(seen: Sequence[tuple[float, float]], extreme: Callable[..., tuple[float, float]]) -> tuple[Point, ...]:
    """The points, thinned to the extreme of each stretch of time: a peak is never lost."""
    step = -(-len(seen) // _MOST)
    kept = (extreme(seen[n : n + step], key=lambda one: one[1]) for n in range(0, len(seen), step))
    return tuple(Point(round(at, 1), Interval(value, value, value)) for at, value in kept)


_ASSETS = files("sparkwright.report") / "assets"
# No image, font, frame or connection; script and style only as they were written here, by their hashes.
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'"


def report_page(
    summaries: Sequence[RunSummary], comparisons: Sequence[Comparison] = (), maker: str = "sparkwright"
) -> str:
    """The whole file. Several runs are drawn over each other. maker: program and version, for the last line."""
    called = run_labels(summaries)
    plots = plots_of(summaries, called)
    requests = timelines([summary.run for summary in summaries])
    body = [
        head_of(summaries, called),
        *(compared(one) for one in lettered(summaries, comparisons)),
        html_tag("div", *(plot_section(plot) for plot in plots), class_="plots"),
        timeline_section(requests, called),
        *(run_details(summary, name) for summary, name in zip(summaries, called, strict=True)),
    ]
    data = Html(data_json(called, plots, requests))
    return document(", ".join(called), join_html(*body), data, maker)


def lettered(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Runs by the letters that they have on the page."""
    known = {summary.run.id: f"{letter(place)} ({summary.run.id})" for place, summary in enumerate(summaries)}
    return [replace(one, base=known.get(one.base, one.base), new=known.get(one.new, one.new)) for one in comparisons]


def plots_of(summaries: Sequence[RunSummary], called: Sequence[str]) -> list[Plot]:
    """The plots in the order of the page: the most asked-for first."""
    turns, runs = turn_plot(summaries), [summary.run for summary in summaries]
    return [*([turns] if turns else []), *depth_plots(summaries), *load_plots(summaries), *resource_plots(runs, called)]


def document(title: str, body: Html, data: Html, maker: str, kind: str = "Benchmark") -> str:
    """kind: of what it is a report, as its first line says."""
    style, script = style_and_script()
    head = html_tag(
        "head",
        html_tag("meta", charset="utf-8"),
        html_tag("meta", http_equiv="Content-Security-Policy", content=policy()),
        html_tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html_tag("meta", name="color-scheme", content="light dark"),
        html_tag("meta", name="referrer", content="no-referrer"),
        html_tag("title", f"{title} – {kind.lower()} report"),
        html_tag("style", style),
    )
    theme = html_tag("button", "Theme: auto", type_="button", id_="theme", hidden=True)
    top = html_tag("header", html_tag("span", f"{kind} report", class_="brand"), theme, class_="top")
    foot = html_tag(
        "footer", f"Made by {maker}. Drawn with uPlot, MIT licence. This file asks the network for nothing."
    )
    kept = html_tag("script", data, type_="application/json", id_="data")
    whole = html_tag(
        "html", head, html_tag("body", top, html_tag("main", body), foot, kept, html_tag("script", script)), lang="en"
    )
    return f"<!doctype html>\n{whole}\n"


def style_and_script() -> tuple[Html, Html]:
    style = Html(_asset("uplot.css") + _asset("page.css"))
    return style, Html(f"/*! uPlot\n{_asset('uplot-LICENSE.txt')}*/\n{_asset('uplot.js')}\n{_asset('page.js')}")


def policy() -> str:
    """The Content-Security-Policy under which only this version's own style and script count."""
    style, script = style_and_script()
    return f"{_POLICY}; script-src '{_hash(script)}'; style-src '{_hash(style)}'"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
