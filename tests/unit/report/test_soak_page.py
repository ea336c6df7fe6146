"""Pages of soaks and evaluations: findings first, plots, failing exchanges; nothing of a stranger becomes markup."""

import json
import re
from dataclasses import replace

from sparkwright.app.bench.report import ReportForm, evaluated
from sparkwright.domain.evaluation import Evaluation, Event, ProbeEvidence, ProbeOutcome, ProbeState
from sparkwright.domain.run import Run
from sparkwright.evals.score import wilson_score
from unit.loadgen.soaks import SoakScript, soak

EVIL = "</script><img src=x onerror=alert(1)>"
BAD = ProbeOutcome(
    "tool-call", ProbeState.FAILED, EVIL, at=6000.0, means="m", hint="h", evidence=(ProbeEvidence(EVIL, EVIL, EVIL),)
)


def plot_names(page: str) -> list[str]:
    """The plots of the page, by their names."""
    data = re.search(r'id="data">(.*?)</script>', page)
    assert data
    return [one["id"] for one in json.loads(data[1])["plots"]]


def scored(name: str, good: int) -> Run:
    outcomes = (
        ProbeOutcome("prompts, strict", ProbeState.SCORED, score=wilson_score(good, 100)),
        ProbeOutcome("json", ProbeState.PASSED),
    )
    return replace(soak(SoakScript()), id=name, levels=(), evaluation=Evaluation("instructions", outcomes))


def test_a_soak() -> None:
    """The findings come before plots and tables, with the exchange of each probe that failed."""
    run = soak(SoakScript(leak=1.0), (BAD, replace(BAD, at=9000.0)), (Event(9.0, "incident", EVIL),))
    page = evaluated((run,), ReportForm.HTML, "test")
    assert plot_names(page) == ["ttft-time", "tpot-time", "probes-time", "memory-time"]
    assert page.index("leak: spark-1 loses") < page.index('id="plot-ttft-time"') < page.index("time until the floor")
    assert "onerror=alert" in page and "<img" not in page
    post = evaluated((run,), ReportForm.MARKDOWN, "test")
    assert "found leak, answers, incident" in post and "| leak |" in post
    assert "nothing found" in evaluated((soak(SoakScript()),), ReportForm.MARKDOWN, "test")


def test_what_is_unknown_is_on_the_page() -> None:
    """A process alone shows nothing of the nodes; it has a plot of its own."""
    page = evaluated((soak(SoakScript(process=True)),), ReportForm.HTML, "test")
    assert "memory of the nodes is unknown" in page
    assert "process-time" in plot_names(page)


def test_scores_are_drawn_with_their_intervals() -> None:
    """A mark a run and outcome; what has no score is not drawn."""
    page = evaluated((scored("r-a", 60), scored("r-b", 80)), ReportForm.HTML, "test")
    assert page.count("<circle") == 2
    assert "60 of 100, 50 to 69 %" in page and "A: r-a; B: r-b" in page
    assert "<h2>A: r-a</h2>" in page and "<h2>B: r-b</h2>" in page, "whose tiles these are"
    assert "<svg" not in evaluated((soak(SoakScript()),), ReportForm.HTML, "test")


def test_all_reports_have_one_template() -> None:
    """The right title, the banner, tiles, conditions that stack, no empty column, few cases folded away."""
    page = evaluated((scored("r-a", 60),), ReportForm.HTML, "test")
    assert "Evaluation report</span>" in page and "evaluation report</title>" in page
    run = soak(SoakScript())
    simulated = replace(run, conditions=replace(run.conditions, simulated=True))
    for marked in (run, simulated):
        shown = evaluated((marked,), ReportForm.HTML, "test")
        assert ('<p class="simulated" role="note">' in shown) is marked.conditions.simulated
    assert "Soak report</span>" in evaluated((soak(SoakScript()),), ReportForm.HTML, "test")
    assert '<dl class="figures">' in page and '<dl class="conditions">' in page and "Benchmark" not in page
    assert ">detail<" not in page, "a column that is empty in every row"
