"""The progress of a benchmark, from rows that have ended."""

from fakes.runs import agent_plans, depth_plans
from sparkwright.cli.bench_screen import BenchProgress, level_line, live_block, summary_line, work_tokens
from sparkwright.domain.run import Lag, Row

D0, DEEP = depth_plans((0, 131072))


def make_row(first: float = 0.3, **more: object) -> Row:
    return Row(0, 0, 0.0, **{"sent": 0.0, "first": first, "output_tokens": 128, **more})  # type: ignore[arg-type]


def test_rates_are_of_what_has_ended() -> None:
    """Two answers of 128 tokens in four seconds of the client's clock; warm-up and noise are no part of it."""
    progress = BenchProgress([D0], 1)
    progress.begin(D0, 0, 1, 100.0)
    for one in (
        make_row(warmup=True),
        make_row(counted=False),
        make_row(0.2, sent=1.0, end=2.0),
        make_row(0.4, sent=2.0, end=3.0),
    ):
        progress.take(one)
    assert summary_line(progress) == "2 of 4 requests  64.0 tokens/s  TTFT 300 ms"


def test_failures_are_counted_by_kind_while_it_runs() -> None:
    """Nobody waits for an hour to learn that every request was refused."""
    progress = BenchProgress([D0], 1)
    progress.begin(D0, 0, 1, 0.0)
    for kind in ("http-429", "cut", "http-429"):
        progress.take(make_row(error="x", kind=kind))
    progress.lag = Lag(p99=0.012)
    assert summary_line(progress) == "3 of 4 requests  client lag 12.0 ms  http-429: 2 failed  cut: 1 failed"


def test_before_anything_ended_nothing_is_guessed() -> None:
    """No rate, no time left."""
    progress = BenchProgress([D0], 1)
    assert live_block(progress, 0.0) == ["  getting ready ..."]
    progress.begin(D0, 0, 1, 0.0)
    assert progress.rate() is None and progress.left(5.0) is None and "left" not in "".join(live_block(progress, 5.0))


def test_a_deep_level_is_more_work_than_a_shallow_one() -> None:
    """Half of the levels is not half of the time."""
    progress = BenchProgress([D0, DEEP], 1)
    progress.begin(D0, 0, 1, 0.0)
    progress.end(10.0)
    assert work_tokens(DEEP) > 5 * work_tokens(D0) and progress.share() < 0.15
    left = progress.left(10.0)
    assert left and left > 50.0


def test_all_work_done_is_all_of_it() -> None:
    """Level by level, repeat by repeat, to one, and no time is left."""
    progress = BenchProgress([D0, DEEP], 2)
    seen = []
    for repeat in range(2):
        for plan in (D0, DEEP):
            progress.begin(plan, repeat, 2, 0.0)
            progress.take(make_row())
            seen.append(progress.share())
            progress.end(1.0)
    assert seen == sorted(seen) and progress.share() == 1.0 and progress.left(1.0) is None


def test_levels_that_nobody_counted_are_counted_as_they_come() -> None:
    """A search makes its levels while it runs: never `3 of 1`."""
    progress = BenchProgress([D0], 1)
    for _ in range(3):
        progress.begin(D0, 0, 1, 0.0)
        progress.end(1.0)
    assert level_line(progress) == "3 of 3  d0" and progress.share() <= 1.0


def test_simulated_is_reported_from_the_first_answer_on() -> None:
    """The screen shows it, too."""
    progress = BenchProgress([D0], 3)
    progress.begin(D0, 1, 3, 0.0)
    progress.take(make_row(simulated=True))
    assert level_line(progress) == "SIMULATED  1 of 3  d0, repeat 2 of 3"


def test_an_agents_requests_are_its_turns() -> None:
    """Two agents of ten turns are twenty requests."""
    assert agent_plans()[0].request_count == 20
