"""A service that gives nothing against one that works: what is shown, from when on, and what is left of it."""

import pytest

from sparkwright.domain.sample import GpuSample
from sparkwright.supervisor.core.detect.detectors import Detectors
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery
from unit.supervisor.core.detect.figures import (
    IDLE,
    NODES,
    SETTLED,
    SPINNING,
    START,
    WORKING,
    answered,
    cleared,
    detectors,
    engine,
    faults,
    sample,
    settled,
)

QUICK = {"prefill_tokens_s": 100_000.0}  # a step of 8,192 prompt tokens: 0.3 s


def serving(watch: Detectors, at: float, seconds: int = 10) -> float:
    """Two requests get their tokens; when the last ones came."""
    for second in range(seconds):
        watch.engine(engine(at + second, running=2.0, kv_usage=0.4, generation_tokens=40.0 * second), at + second)
    return at + seconds - 1


def stall_faults(watch: Detectors, at: float, seconds: int, gpu: GpuSample | None = None) -> dict[int, Fault]:
    """The same figures for so long: the second of each stall that is reported. The last tokens were 360."""
    told = {}
    for second in range(1, seconds + 1):
        now = at + second
        found = watch.engine(engine(now, running=2.0, kv_usage=0.4, generation_tokens=360.0), now)
        if gpu and second % 5 == 0:
            for node in NODES:
                found += watch.sample(node, sample(now, gpu), now)
        if fault := faults(found).get("stalled"):
            told[second] = fault
    return told


@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "settled"])
def test_requests_that_get_no_token_are_shown_within_seconds(fresh: bool) -> None:
    """The requests are shown right after a start, too, which excuses a relaunch and not the word."""
    watch = detectors(**QUICK) if fresh else settled(**QUICK)
    last = serving(watch, START if fresh else SETTLED)
    told = stall_faults(watch, last, 4)
    assert list(told) == [3] and told[3].recovery is Recovery.NONE and told[3].since == last
    stall_faults(watch, last + 4, 27)
    assert watch.quiet(last + 31).startswith("2 requests running, no token for 31 s; launched again after ")


def test_what_one_step_of_a_prompt_explains_is_no_stall() -> None:
    """The figures of a chunked prefill move with each step: until one is over, it is only reported what is to be
    seen."""
    watch = settled()
    last = serving(watch, SETTLED)
    assert stall_faults(watch, last, 16) == {}
    assert "2 requests running, no token for 16 s; 17 s may pass (a step of 8,192 prompt tokens" in watch.quiet(
        last + 16
    )
    assert list(stall_faults(watch, last + 16, 2)) == [1]


def test_an_engine_whose_speed_is_not_known_is_shown_within_seconds_too() -> None:
    """Guards a model without a planned speed: a cut fabric would be excused as a step."""
    watch = settled(prefill_tokens_s=0.0)
    last = serving(watch, SETTLED)
    assert list(stall_faults(watch, last, 7)) == [6]


def test_no_step_explains_gpus_that_do_not_compute() -> None:
    """A rank that waits in a collective spins, one that is stopped idles: seen with the next reading."""
    for gpu, first in ((SPINNING, 5), (IDLE, 5), (WORKING, 0)):
        watch = settled()
        last = serving(watch, SETTLED)
        assert next(iter(stall_faults(watch, last, 12, gpu)), 0) == first


def test_a_long_prefill_that_moves_is_none() -> None:
    """Minutes without a token while the KV usage grows step by step."""
    watch, at = settled(), SETTLED
    for second in range(600):
        found = watch.engine(engine(at + second, running=1.0, kv_usage=0.001 * (second // 8)), at + second)
        assert not faults(found)


def test_an_engine_that_answers_nothing_is_a_stall() -> None:
    """Frozen head: neither figures nor tokens, whatever it reported last."""
    watch = settled(**QUICK)
    watch.engine(engine(SETTLED), SETTLED)
    told = [second for second in range(1, 9) if "stalled" in faults(watch.tick(SETTLED + second))]
    assert told == [5]
    assert "answers nothing, not even its figures" in watch.quiet(SETTLED + 8)
    assert "stalled" in cleared(watch.engine(engine(SETTLED + 9), SETTLED + 9))


def test_a_canary_under_way_is_work_of_which_the_engine_may_not_know() -> None:
    """An engine that hangs reports what it reported last, `running 0` included: our own request shows it."""
    watch = settled(**QUICK)
    watch.canary(answered(SETTLED), SETTLED)
    watch.canaries.pending = SETTLED + 20
    told = []
    for second in range(20, 30):
        found = watch.engine(engine(SETTLED + second), SETTLED + second)
        told += [second] if "stalled" in faults(found) else []
    assert told == [23] and watch.quiet(SETTLED + 30).startswith("no token for 10 s")


def test_an_idle_engine_is_ready() -> None:
    """Nobody asks, nothing moves: that is no stall for as long as it lasts."""
    watch = settled(**QUICK)
    for second in range(600):
        assert not faults(watch.engine(engine(SETTLED + second), SETTLED + second))
        if watch.wants_canary(SETTLED + second):
            watch.canary(answered(SETTLED + second), SETTLED + second)
    assert watch.quiet(SETTLED + 600) == ""


def test_clients_that_give_up_are_no_recovery() -> None:
    """The stall is over when something moves, and is reported with its beginning and what was seen."""
    watch = settled(**QUICK)
    last = serving(watch, SETTLED)
    stall_faults(watch, last, 20)
    gone = {"generation_tokens": 360.0, "kv_usage": 0.4}
    for second in range(21, 60):
        assert "stalled" not in cleared(watch.engine(engine(last + second, **gone), last + second))
    assert watch.hurries(last + 60), "nobody else may ask"
    (over,) = [one for one in watch.canary(answered(last + 58), last + 60) if isinstance(one, Cleared)]
    assert (over.kind, over.since) == ("stalled", last) and "no token for" in over.what


def test_a_fault_counts_from_the_last_sign_of_life() -> None:
    """The clients' outage is longer than the one known when it was found."""
    watch = settled(**QUICK)
    last = serving(watch, SETTLED)
    stall_faults(watch, last, 40)
    assert watch.lost_since(last + 41) == last
    watch.engine(engine(last + 42, generation_tokens=400.0), last + 42)
    assert watch.lost_since(last + 50) == last + 50, "nobody waits"


def hanging(watch: Detectors, since: float, seconds: int, answers: bool = False) -> list[int]:
    """A request is in flight at the gateway, and the engine reports that none runs: the seconds at which a stall
    begins.

    answers: the probe gets an answer within a second.
    """
    told: list[int] = []
    for second in range(1, seconds + 1):
        now = since + second
        found = (*watch.gateway(1, now), *watch.engine(engine(now, generation_tokens=360.0), now))
        told += [second] if "stalled" in faults(found) else []
        if watch.canaries.pending and answers:
            watch.canary(answered(watch.canaries.pending), now)
        elif not watch.canaries.pending and watch.wants_canary(now):
            watch.canaries.pending = now
    return told


def test_requests_that_hang_while_the_engine_reports_none_are_seen_within_seconds() -> None:
    """A frozen head or scheduler shows its last figures, `running 0`: the gateway knows that somebody waits."""
    watch = settled(**QUICK)
    watch.canary(answered(SETTLED), SETTLED)
    asked = SETTLED + 9.0
    for second in range(10):
        watch.engine(engine(SETTLED + second, generation_tokens=360.0), SETTLED + second)
    assert hanging(watch, asked, 6) == [4]
    assert watch.quiet(asked + 6).startswith(
        "1 request in flight at the gateway, none reported by the engine, no token for 5.0 s"
    )
    assert watch.lost_since(asked + 6) == asked + 1


def test_a_client_that_sends_its_body_slowly_is_no_stall() -> None:
    """The probe is answered, once: an upload of minutes neither degrades the service nor makes it answer probes."""
    watch = settled(**QUICK)
    watch.canary(answered(SETTLED), SETTLED)
    assert hanging(watch, SETTLED, 60, answers=True) == []
    assert watch.canaries.asked < SETTLED + 55  # as often as without a client
