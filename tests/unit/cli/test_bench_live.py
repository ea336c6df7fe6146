"""The screen of a benchmark: lines where no terminal is, a block where one is."""

import io
import sys

import pytest
from rich.console import Console

from fakes.runs import depth_plans
from sparkwright.cli.bench_screen import BenchProgress, BenchScreen, LiveBlock, bench_screen
from sparkwright.domain.run import Lag, Row

PLANS = depth_plans((0, 4096))


def test_without_a_terminal_each_level_is_two_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A level prints its beginning and its result; nothing on stdout."""
    with bench_screen(PLANS, 1) as screen:
        for plan in PLANS:
            screen.level(plan, 0, 1)
            screen.row(Row(0, 0, 0.0, 0.0, first=0.3, output_tokens=128))
            screen.lag(Lag(p99=0.0004))
            screen.done()
        screen.note("the server told no /metrics")
    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert told.out == "" and len(lines) == 5
    assert lines[2] == "2 of 2  d4096" and lines[3].startswith("  1 of 4 requests")
    assert lines[3].endswith("TTFT 300 ms  client lag 0.4 ms") and lines[4] == "the server told no /metrics"


def test_a_terminal_that_cannot_draw_gets_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A level may take an hour: it must not be silent because a block cannot be drawn."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with bench_screen(PLANS, 1) as screen:
        screen.level(PLANS[0], 0, 1)
    assert capsys.readouterr().err == "1 of 2  d0\n"


def test_what_is_simulated_reports_it_from_the_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The mark stands before any answer has come, and for a user who reads only one line."""
    with bench_screen(PLANS, 1, simulated=True) as screen:
        screen.level(PLANS[0], 0, 1)
    assert capsys.readouterr().err == "SIMULATED  1 of 2  d0\n"


def test_quiet_reports_notes_only(capsys: pytest.CaptureFixture[str]) -> None:
    """The stdout of --json is for the result alone."""
    with bench_screen(PLANS, 1, quiet=True) as screen:
        screen.level(PLANS[0], 0, 1)
        screen.row(Row(0, 0, 0.0, 0.0))
        screen.done()
        screen.note("a note")
    told = capsys.readouterr()
    assert told.out == "" and told.err == "a note\n"


def test_the_block_fits_a_narrow_terminal() -> None:
    """Cut at the edge, never wrapped: a block that grows would leave its lines behind."""
    progress = BenchProgress(PLANS, 1)
    screen = BenchScreen(progress, lambda text: None)
    screen.level(PLANS[0], 0, 1)
    screen.row(Row(0, 0, 0.0, 0.0, first=0.3, output_tokens=128))
    drawn = Console(file=io.StringIO(), width=30).render_lines(LiveBlock(progress), pad=False)
    lines = ["".join(segment.text for segment in line) for line in drawn]
    assert len(lines) == 3 and all(len(line) <= 30 for line in lines)
