"""The outline that a run reports beforehand."""

import pytest

from fakes.prepared_bench import NO_BENCH
from fakes.tokenizer import CountingTokenizer
from sparkwright.app.bench.benchmark import adjusted, fitting_levels
from sparkwright.app.bench.measure import repeated_levels
from sparkwright.app.bench.target import BenchRequest, BenchTarget, PreparedBench
from sparkwright.domain.errors import UsageError
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import RunConditions
from sparkwright.domain.workload import Agent, Length, LevelPlan, Pace, Single, Workload

SHORT = LevelPlan("short", Single(Length(100, 100), Length(10, 10)), Pace(concurrency=2), requests=4)
DEEP = LevelPlan("deep", Single(Length(100, 100), Length(10, 10), depth=8000), requests=2)
LOOP = LevelPlan("loop", Agent(3, 400, 0, 200, 0, 40, cached=0.8), requests=2)
WORK = Workload("w", "t", (SHORT, DEEP, LOOP), repeats=2, deadline=60.0)


def probed(context: int) -> Probed:
    return Probed("http://node", "m", context=context)


def test_levels_that_do_not_fit_are_named() -> None:
    """The message has the needed and the present context."""
    fitting, left_out = fitting_levels(WORK, probed(4096))
    assert [plan.name for plan in fitting] == ["short", "loop"]
    assert left_out == ("deep needs 8,110 tokens of context, and the server takes 4,096",)


def test_a_limit_that_is_not_reported_leaves_nothing_out() -> None:
    """The server's own refusal will be counted."""
    assert fitting_levels(WORK, probed(0))[1] == ()


def test_nothing_fits() -> None:
    """A workload of which nothing fits is no run."""
    with pytest.raises(UsageError, match="no level fits m"):
        fitting_levels(WORK, probed(64))


def test_requests_and_tokens_add_up() -> None:
    """The sum is of all repeats, without warm-up: 4 x 110, and two agents of three turns each (600, 800 and 1,050 and
    40 more)."""
    found, known = probed(4096), RunConditions("http://node", "m")
    outlines = fitting_levels(WORK, found)
    made = PreparedBench(
        NO_BENCH, BenchTarget("http://node"), found, BenchRequest(WORK), *outlines, CountingTokenizer(), known
    )
    assert made.requests == 2 * (4 + 6)
    assert made.tokens == 2 * (4 * 110 + 6 * ((600 + 800 + 1050) // 3 + 40))


def test_repeats_are_interleaved() -> None:
    """A drift of the machine then shows as spread within levels, not as a difference between them."""
    assert [(repeat, plan.name) for repeat, plan in repeated_levels(WORK, (SHORT, LOOP))] == [
        (0, "short"),
        (0, "loop"),
        (1, "short"),
        (1, "loop"),
    ]


def test_options_change_only_what_they_name() -> None:
    """None leaves it; a seed of 0 is one."""
    assert adjusted(WORK, None, None, None) == WORK
    changed = adjusted(WORK, 5, 0, 9.0)
    assert (changed.repeats, changed.seed, changed.deadline, changed.levels) == (5, 0, 9.0, WORK.levels)
