"""Single requests: which are shown, and that thinning hides no pause."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fakes.runs import RequestMachine, depth_plans, run
from sparkwright.domain.run import Reads, Row
from sparkwright.report.timelines import telling, thinned, timelines


def make_row(session: int, first: float, pause: float = 0.02, **more: object) -> Row:
    reads = Reads((first, first + 0.02, first + 0.02 + pause), (1, 2, 1))
    return replace(Row(session, 0, 0.0, 0.0, first=first, reads=reads), **more)  # type: ignore[arg-type]


def test_the_requests_that_show_most_are_chosen() -> None:
    """Typical, slowest, longest pause, broken; never warm-up."""
    level = RequestMachine().level(depth_plans((0,))[0], 0, 0.0)
    rows = (
        make_row(0, 0.3),
        make_row(1, 0.31),
        make_row(2, 0.9),
        make_row(3, 0.2, pause=2.0),
        make_row(4, 0.3, error="cut", kind="cut"),
    )
    found = telling(replace(level, rows=(*rows, make_row(5, 9.0, warmup=True))))
    assert [(why, one.session) for why, one in found] == [
        ("typical", 1),
        ("slowest first token", 2),
        ("longest pause", 3),
        ("failed (cut)", 4),
    ]


def test_a_level_without_tokens_has_no_timeline() -> None:
    """All its requests failed before the first."""
    level = RequestMachine().level(depth_plans((0,))[0], 0, 0.0)
    assert telling(replace(level, rows=(Row(0, 0, 0.0, 0.0, error="refused", kind="refused"),))) == []


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=600), st.integers(40, 80))
def test_thinning_keeps_both_ends_and_the_longest_pause(gaps: list[float], most: int) -> None:
    """The thinned stream is within its limit, in order, whatever the stream."""
    at = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    kept = thinned(at, most)
    assert kept == sorted(set(kept)) and len(kept) <= most and {kept[0], kept[-1]} == {0, len(at) - 1}
    if len(at) > 1:
        longest = max(range(1, len(at)), key=lambda n: at[n] - at[n - 1])
        widest = max((at[b] - at[a] for a, b in pairwise(kept) if b == a + 1), default=0.0)
        assert len(at) <= most or widest >= at[longest] - at[longest - 1]


def test_totals_survive_thinning() -> None:
    """The last point of a timeline is all tokens of the request."""
    for one in timelines([run(depth_plans((0, 4096)))]):
        assert one.total[-1] == 128 and list(one.at) == sorted(one.at)
