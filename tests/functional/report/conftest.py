"""A browser for the whole session, and pages of runs as the store gives them back."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes import runs
from functional.report.browser import BROWSER, BrowserPage, browser
from sparkwright.adapters.sqlite.runs import SqliteRuns
from sparkwright.app.bench.report import compared_with_first
from sparkwright.domain.run import Run
from sparkwright.domain.summary import RunSummary
from sparkwright.loadgen.stats import summarize
from sparkwright.report.html import report_page as html


@dataclass(frozen=True, slots=True)
class ShownReport:
    """A page, and what the store reports that it must show."""

    path: Path
    summaries: tuple[RunSummary, ...]


@pytest.fixture(scope="session")
def browser_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserPage]:
    if not BROWSER:
        pytest.skip("chromium is not installed")
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="session")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> ShownReport:
    """Every kind of level, in one run."""
    return make_report(tmp_path_factory.mktemp("one"), [runs.run(runs.everything())])


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> ShownReport:
    """The same on two engines, one of them slower."""
    plans = [*runs.depth_plans((0, 4096)), *runs.agent_plans(4)]
    slower = runs.run(plans, "r-20261122-9c01", runs.RequestMachine(2, 0.7), engine="sglang", engine_version="0.5.23")
    return make_report(tmp_path_factory.mktemp("two"), [runs.run(plans), slower])


def make_report(folder: Path, made: Sequence[Run]) -> ShownReport:
    """Saves the runs into the store and reads them back, as `report` does."""
    kept = asyncio.run(_kept(folder / "runs.sqlite", made))
    summaries = tuple(summarize(run) for run in kept)
    path = folder / "report.html"
    path.write_text(html(summaries, compared_with_first(summaries)), encoding="utf-8")
    return ShownReport(path, summaries)


async def _kept(path: Path, made: Sequence[Run]) -> list[Run]:
    store = SqliteRuns(path)
    try:
        for run in made:
            await store.add(run)
        return [await store.load(run.id) for run in made]
    finally:
        await store.aclose()
