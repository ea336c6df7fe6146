"""Reports of all kinds, as people with a screen reader, a phone, a dark room or no script get them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from functional.report.browser import DESK, PHONE, BrowserPage
from functional.report.conftest import ShownReport
from sparkwright.app.bench.report import ReportForm, evaluated
from sparkwright.domain.evaluation import Event, ProbeEvidence, ProbeOutcome, ProbeState
from sparkwright.domain.run import Run
from sparkwright.tune.page import tuning_page
from unit.loadgen.soaks import SoakScript, soak
from unit.report.test_soak_page import scored
from unit.tune.test_page import make_trial, make_tuned

KINDS = ("bench", "compared", "soak", "probes", "instructions", "tune")
_FAILED = ProbeOutcome(
    "tool-call",
    ProbeState.FAILED,
    "the arguments are no JSON",
    at=6000.0,
    means="an agent stops there",
    hint="choose the parser of the model",
    evidence=(ProbeEvidence("the call", '{"tools": []}', '{"arguments": "{"}'),),
)


def marked(run: Run) -> Run:
    return replace(run, conditions=replace(run.conditions, simulated=True, model="twin-tiny"))


def evaluations() -> Iterator[tuple[str, str]]:
    """Pages with every part that they can have: findings, events, failed exchanges, scores with intervals."""
    events = (Event(2000.0, "incident", "rank 1 was killed"), Event(9.0, "fault", "kill -9"))
    leaking = marked(soak(SoakScript(leak=1.0), (_FAILED, replace(_FAILED, at=9000.0)), events))
    yield "soak", evaluated((leaking,), ReportForm.HTML, "test")
    yield "instructions", evaluated((scored("r-a", 60), marked(scored("r-b", 80))), ReportForm.HTML, "test")
    probes = scored("r-c", 60)
    found = (_FAILED, ProbeOutcome("json", ProbeState.PASSED), ProbeOutcome("images", ProbeState.UNSUPPORTED, "none"))
    assert probes.evaluation
    shown = replace(probes, evaluation=replace(probes.evaluation, outcomes=found))
    yield "probes", evaluated((marked(shown),), ReportForm.HTML, "test")
    trials = (
        make_trial(0, 0, 90.0, 99.0),
        make_trial(0, 2, 100.0, 102.0),
        make_trial(1, 0, 120.0),
        make_trial(1, 2, 150.0, 152.0),
    )
    yield "tune", tuning_page(make_tuned(*trials), "test")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, one_run: ShownReport, two_runs: ShownReport) -> dict[str, Path]:
    folder, made = tmp_path_factory.mktemp("reports"), {"bench": one_run.path, "compared": two_runs.path}
    for name, text in evaluations():
        made[name] = folder / f"{name}.html"
        made[name].write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_everyone_can_read_it(browser_page: BrowserPage, reports: dict[str, Path], kind: str) -> None:
    """Guards contrast, names, landmarks and structure as axe-core checks them, light and dark; nothing is cut."""
    for size, theme in ((DESK, "light"), (DESK, "dark"), (PHONE, "light"), (PHONE, "dark")):
        browser_page.show(reports[kind], size, theme)
        assert (found := browser_page.violations()) == [], (size, theme, found)
        assert browser_page.overflow() <= 0, (size, theme)
        assert browser_page.complaints == []


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_whole_without_a_script(browser_page: BrowserPage, reports: dict[str, Path], kind: str) -> None:
    """Guards a mail program's view and a browser that runs nothing: the figures are text or tables."""
    browser_page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser_page.show(reports[kind])
    finally:
        browser_page.call("Emulation.setScriptExecutionDisabled", value=False)
    words = browser_page.script("return document.body.innerText")
    assert len(words) > 600 and browser_page.script("return document.querySelectorAll('table').length") > 0
    title = {"bench": "Benchmark", "compared": "Benchmark", "soak": "Soak", "tune": "Tuning"}.get(kind, "Evaluation")
    assert title.lower() in words.lower()
    assert browser_page.overflow() <= 0
