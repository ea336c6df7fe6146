"""The reports during work: lines where no terminal is, a block that moves on one."""

from typing import Any

import pytest

from sparkwright.cli import console
from sparkwright.cli.console import LiveProgress, PlainProgress, Quiet, progress_text, rank_text
from sparkwright.domain.deployment import Phase
from sparkwright.domain.progress import Notice, Progress, RankPhase, StepDone, StepStarted


@pytest.fixture
def console_clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the console: now[0] seconds."""
    at = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: at[0])  # type: ignore[attr-defined]
    return at


def printed(capsys: Any) -> list[str]:
    """Lines on stderr without their times; nothing is on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    return [line.split(" s  ", 1)[-1] for line in err.splitlines()]


LOADING = RankPhase(0, "spark-1", Phase.LOAD, "shards", 1.0, 4.0, "shards", 230.0)


def test_lines_report_what_begins_and_ends(capsys: Any, console_clock: list[float]) -> None:
    """Each line has the time since the start in front."""
    lines = PlainProgress()
    console_clock[0] = 61.0
    for happening in (StepStarted("facts", "asking spark-1"), StepDone("facts", 0.4), Notice("odd", warning=True)):
        lines.report(happening)
    err = capsys.readouterr().err.splitlines()
    assert err == [
        "   61.0 s  facts: asking spark-1",
        "   61.0 s  facts: done in 0.4 s",
        "   61.0 s  warning: odd",
    ]


def test_progress_is_reported_now_and_then(capsys: Any, console_clock: list[float]) -> None:
    """A log file of a CI run must not hold a line for each shard."""
    lines = PlainProgress()
    for number in range(100):
        console_clock[0] = number * 0.1
        lines.report(RankPhase(0, "spark-1", Phase.LOAD, "shards", float(number), 100.0, "shards"))
    assert 3 <= len(printed(capsys)) <= 7


def test_a_new_phase_is_always_reported(capsys: Any, console_clock: list[float]) -> None:
    """A new phase is reported whatever came a moment ago."""
    lines = PlainProgress()
    for phase in (Phase.LOAD, Phase.COMPILE, Phase.GRAPHS):
        lines.report(RankPhase(0, "spark-1", phase))
    assert [line.split()[3] for line in printed(capsys)] == ["load", "compile", "graphs"]


def test_with_json_only_warnings_are_reported(capsys: Any) -> None:
    """stderr stays empty when all is well."""
    quiet = Quiet()
    for happening in (StepStarted("x"), LOADING, Notice("fine"), Notice("odd", warning=True)):
        quiet.report(happening)
    assert printed(capsys) == ["warning: odd"]


def test_the_live_block_shows_ranks_with_their_time_and_what_is_usual(capsys: Any, console_clock: list[float]) -> None:
    """One line a rank; the time counts from the phase's begin, not from the last progress."""
    live = LiveProgress(PlainProgress())
    live.report(LOADING)
    console_clock[0] = 12.0
    live.report(RankPhase(0, "spark-1", Phase.LOAD, "shards", 2.0, 4.0, "shards", 230.0))
    live.report(RankPhase(1, "spark-2", Phase.RENDEZVOUS, "waits"))
    lines = str(live.__rich__()).replace("\\[", "[").splitlines()
    assert lines[0] == "  rank 0 spark-1  load       2 of 4 shards  shards  [12 s, usually 3 min 50 s]"
    assert lines[1].startswith("  rank 1 spark-2  rendezvous waits  [0.0 s")


def test_a_copy_is_a_bar() -> None:
    """The text has the done and the total amount; without a total no bar."""
    told = Progress("stage", "spark-1", 37.5, 150.0, "GiB", "weights to spark-2 at 1.1GB/s")
    assert progress_text(told) == "#####                37.5 of 150.0 GiB  weights to spark-2 at 1.1GB/s"
    assert progress_text(Progress("stage", "n", 3.0, None, "GiB", "x")) == "3.0 GiB  x"
    assert progress_text(Progress("stage", "n", None, None, "", "x")) == "x"


def test_phases_are_in_columns() -> None:
    """Ranks are compared at a glance."""
    assert rank_text(LOADING) == "rank 0 spark-1  load       1 of 4 shards  shards"
