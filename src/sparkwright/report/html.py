"""A report as one HTML file that asks the network for nothing."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

from sparkwright.domain.summary import Comparison, RunSummary
from sparkwright.report.agentic import turn_plot
from sparkwright.report.markup import Html, join, tag
from sparkwright.report.page_data import data_json
from sparkwright.report.page_parts import compared, head_of, plot_section, run_details, timeline_section
from sparkwright.report.resources import resource_plots
from sparkwright.report.series import Plot, depth_plots, load_plots
from sparkwright.report.tables import names
from sparkwright.report.timelines import timelines
from sparkwright.report.words import letter

_ASSETS = files("sparkwright.report") / "assets"
# No image, font, frame or connection; script and style only as they were written here, by their hashes.
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'"


def page(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison] = (), maker: str = "sparkwright") -> str:
    """The whole file. Several runs are drawn over each other. maker: program and version, for the last line."""
    called = names(summaries)
    plots = plots_of(summaries, called)
    requests = timelines([summary.run for summary in summaries])
    body = [
        head_of(summaries, called),
        *(compared(one) for one in lettered(summaries, comparisons)),
        tag("div", *(plot_section(plot) for plot in plots), class_="plots"),
        timeline_section(requests, called),
        *(run_details(summary, name) for summary, name in zip(summaries, called, strict=True)),
    ]
    data = Html(data_json(called, plots, requests))
    return _document(", ".join(called), join(*body), data, maker)


def lettered(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Runs by the letters that they have on the page."""
    known = {summary.run.id: f"{letter(place)} ({summary.run.id})" for place, summary in enumerate(summaries)}
    return [replace(one, base=known.get(one.base, one.base), new=known.get(one.new, one.new)) for one in comparisons]


def plots_of(summaries: Sequence[RunSummary], called: Sequence[str]) -> list[Plot]:
    """In the order of the page: what was asked most comes first."""
    turns = turn_plot(summaries)
    runs = [summary.run for summary in summaries]
    return [*([turns] if turns else []), *depth_plots(summaries), *load_plots(summaries), *resource_plots(runs, called)]


def _document(title: str, body: Html, data: Html, maker: str) -> str:
    style = Html(_asset("uplot.css") + _asset("page.css"))
    script = Html(f"/*! uPlot\n{_asset('uplot-LICENSE.txt')}*/\n{_asset('uplot.js')}\n{_asset('page.js')}")
    policy = f"{_POLICY}; script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} – benchmark report"),
        tag("style", style),
    )
    top = tag("header", tag("span", "Benchmark report", class_="brand"), _theme_button(), class_="top")
    foot = tag("footer", f"Made by {maker}. Drawn with uPlot, MIT licence. This file asks the network for nothing.")
    kept = tag("script", data, type_="application/json", id_="data")
    whole = tag("html", head, tag("body", top, tag("main", body), foot, kept, tag("script", script)), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _theme_button() -> Html:
    return tag("button", "Theme: auto", type_="button", id_="theme", hidden=True)


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
