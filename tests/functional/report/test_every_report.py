"""Reports of all kinds, as people with a screen reader, a phone, a dark room or no script get them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from functional.report.browser import DESK, PHONE, Page
from functional.report.conftest import Shown
from sparkwright.app.bench.report import ReportForm, evaluated
from sparkwright.domain.evaluation import Event, ProbeEvidence, ProbeOutcome, ProbeState
from sparkwright.domain.run import Run
from sparkwright.tune.page import tuning_page
from unit.loadgen.soaks import Script, soak
from unit.report.test_soak_page import scored
from unit.tune.test_page import trial, tuned

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
    leaking = marked(soak(Script(leak=1.0), (_FAILED, replace(_FAILED, at=9000.0)), events))
    yield "soak", evaluated((leaking,), ReportForm.HTML, "test")
    yield "instructions", evaluated((scored("r-a", 60), marked(scored("r-b", 80))), ReportForm.HTML, "test")
    probes = scored("r-c", 60)
    found = (_FAILED, ProbeOutcome("json", ProbeState.PASSED), ProbeOutcome("images", ProbeState.UNSUPPORTED, "none"))
    assert probes.evaluation
    shown = replace(probes, evaluation=replace(probes.evaluation, outcomes=found))
    yield "probes", evaluated((marked(shown),), ReportForm.HTML, "test")
    trials = (trial(0, 0, 90.0, 99.0), trial(0, 2, 100.0, 102.0), trial(1, 0, 120.0), trial(1, 2, 150.0, 152.0))
    yield "tune", tuning_page(tuned(*trials), "test")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, one: Shown, two: Shown) -> dict[str, Path]:
    folder, made = tmp_path_factory.mktemp("reports"), {"bench": one.path, "compared": two.path}
    for name, text in evaluations():
        made[name] = folder / f"{name}.html"
        made[name].write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_everyone_can_read_it(page: Page, reports: dict[str, Path], kind: str) -> None:
    """Guards contrast, names, landmarks and structure as axe-core checks them, light and dark; nothing is cut."""
    for size, theme in ((DESK, "light"), (DESK, "dark"), (PHONE, "light"), (PHONE, "dark")):
        page.show(reports[kind], size, theme)
        assert (found := page.violations()) == [], (size, theme, found)
        assert page.overflow() <= 0, (size, theme)
        assert page.complaints == []


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_whole_without_a_script(page: Page, reports: dict[str, Path], kind: str) -> None:
    """Guards a mail program's view and a browser that runs nothing: the figures are text or tables."""
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.show(reports[kind])
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    words = page.script("return document.body.innerText")
    assert len(words) > 600 and page.script("return document.querySelectorAll('table').length") > 0
    title = {"bench": "Benchmark", "compared": "Benchmark", "soak": "Soak", "tune": "Tuning"}.get(kind, "Evaluation")
    assert title.lower() in words.lower()
    assert page.overflow() <= 0
