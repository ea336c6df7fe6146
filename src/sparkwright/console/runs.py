"""Benchmarks and evaluations as plots: the reports that `sparkwright report --console` has put on the head."""

from collections.abc import Collection
from pathlib import Path

from sparkwright.app.bench.runs import REPORT_NAME, REPORTS
from sparkwright.console.figures import number, shortened, time_ago
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.run import RunListing
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.report.html import policy
from sparkwright.report.markup import Html, html_tag, join_html

_MOST, _LARGEST, _ABOUT = 100, 16 * 1024 * 1024, 64 * 1024
_HOW = "sparkwright report RUN --console"
# Our own script and style by their hashes: what else is in the page does not run.
POLICY = f"{policy()}; frame-ancestors 'none'"


def listed(state: Path, models: Collection[str] | None = None) -> list[tuple[str, tuple[RunListing, ...]]]:
    """(name, its runs), the newest report first; what cannot be read is left out. models: as of `report`."""
    found = sorted((state / REPORTS).glob("[!.]*.json"), key=lambda path: -path.stat().st_mtime)
    named = (path for path in found if REPORT_NAME.fullmatch(path.stem) and path.stat().st_size <= _ABOUT)
    pairs = ((path.stem, _runs(path)) for path in named)
    return [(name, runs) for name, runs in pairs if _visible(runs, models)][:_MOST]


def _visible(runs: tuple[RunListing, ...], models: Collection[str] | None) -> bool:
    return bool(runs) and (models is None or all(run.model in models for run in runs))


def _runs(path: Path) -> tuple[RunListing, ...]:
    try:
        return from_json(tuple[RunListing, ...], path.read_bytes())
    except (OSError, Unreadable):
        return ()


def report(state: Path, name: str, models: Collection[str] | None = None) -> bytes | None:
    """The page as it was made, None where there is none. models: all of its runs must be of these, None for any."""
    path = state / REPORTS / f"{name}.html"
    if not REPORT_NAME.fullmatch(name) or not path.is_file() or path.stat().st_size > _LARGEST:
        return None
    if models is not None and not _visible(_runs(path.with_suffix(".json")), models):
        return None
    return path.read_bytes()


def runs_page(found: list[tuple[str, tuple[RunListing, ...]]], now: float) -> Html:
    title, how = (
        html_tag("h1", "Runs"),
        html_tag("p", "A report gets here with ", html_tag("code", _HOW), ".", class_="soft"),
    )
    if not found:
        return join_html(
            title, html_tag("p", "No report of a benchmark or evaluation is on this head node yet.", class_="soft"), how
        )
    heads = ("report", "what", "model", "engine", "requests", "failed", "when")
    cells = (
        html_tag("th", head, scope="col", class_="num" if head in ("requests", "failed") else None) for head in heads
    )
    rows = (_row(name, runs, now) for name, runs in found)
    table = html_tag("table", html_tag("thead", html_tag("tr", *cells)), html_tag("tbody", *rows))
    return join_html(
        title, html_tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Runs"), how
    )


def _row(name: str, runs: tuple[RunListing, ...], now: float) -> Html:
    one, more = runs[0], f" and {len(runs) - 1} more" if len(runs) > 1 else ""
    mark = html_tag("span", "simulated", class_="mark") if any(run.simulated for run in runs) else ""
    link = html_tag("a", f"{one.id}{more}", href=f"{CONSOLE_PATH}/runs/{name}")
    what = one.workload if one.kind == "bench" else shortened(one.kind, 80)
    failed = number(one.errors) if one.kind == "bench" else "–"
    return html_tag(
        "tr",
        html_tag("th", link, " ", mark, scope="row"),
        html_tag("td", shortened(what, 80)),
        html_tag("td", shortened(one.model, 80)),
        html_tag("td", shortened(f"{one.engine} {one.engine_version}".strip(), 60) or "unknown"),
        html_tag("td", number(one.requests) if one.kind == "bench" else "–", class_="num"),
        html_tag("td", failed, class_="num"),
        html_tag("td", time_ago(one.began, now) if one.began else "unknown"),
    )
