"""The canary: when it is asked, and what its silence means."""

from itertools import pairwise

import pytest

from sparkwright.domain.live import LiveEngine
from sparkwright.supervisor.core.state import Recovery
from unit.supervisor.core.detect.figures import (
    IDLE,
    NODES,
    SETTLED,
    START,
    WORKING,
    answered,
    detectors,
    engine,
    faults,
    sample,
    settled,
    unanswered,
)


def looked_at(watch: object, at: float, gpu: object = IDLE) -> None:
    for node in NODES:
        watch.sample(node, sample(at, gpu), at)  # type: ignore[attr-defined]


def silence(began: float, seconds: int, live: LiveEngine | None, gpu: object = IDLE) -> float | None:
    """A canary every 10 s that never answers: after how many seconds it counts as frozen."""
    watch = settled() if began == SETTLED else detectors()
    looked_at(watch, began, gpu)
    for second in range(1, seconds):
        at = began + second
        if second % 5 == 0:
            looked_at(watch, at, gpu)
        found = watch.engine(live, at) if second % 2 == 0 else watch.tick(at)
        if second % 10 == 0:
            found += watch.canary(unanswered(at - 10), at)
        if "frozen" in faults(found):
            assert faults(found)["frozen"].recovery is Recovery.RELAUNCH
            return float(second)
    return None


def test_two_canaries_without_an_answer_on_an_idle_engine() -> None:
    """vLLM that hangs in its first step still reports that nothing runs: only the canary reports."""
    after = silence(SETTLED, 120, engine(0.0))
    assert after is not None
    assert 20 < after <= 40


def test_one_late_canary_is_a_hiccup() -> None:
    """Nobody restarts for one."""
    watch = detectors()
    looked_at(watch, SETTLED)
    assert faults(watch.canary(unanswered(SETTLED), SETTLED + 10)) == {}
    assert faults(watch.canary(answered(SETTLED + 10), SETTLED + 11)) == {}
    looked_at(watch, SETTLED + 100)
    assert faults(watch.canary(unanswered(SETTLED + 90), SETTLED + 100)) == {}


def test_behind_other_work_the_canary_waits_as_long_as_that() -> None:
    """A request runs: it may be in the way, so the stillness has to pass the whole allowance."""
    after = silence(SETTLED, 200, engine(0.0, running=1.0), WORKING)
    assert after is not None
    assert 60 < after <= 80


def test_soon_after_the_start_kernels_may_be_in_the_way() -> None:
    """The patience is that of every request then."""
    after = silence(START + 1, 400, engine(0.0))
    assert after is not None
    assert 290 < after <= 320


def test_an_api_that_answers_nothing_is_frozen() -> None:
    """Neither metrics nor canary, and no GPU works."""
    after = silence(SETTLED, 120, None)
    assert after is not None
    assert 20 < after <= 40


def test_an_api_that_falls_silent_soon_after_the_start_compiles_nothing() -> None:
    """A web server that has reported its engine's KV usage is a process of its own; one that has not may be the
    engine."""
    told = []
    for kv in (0.0, None):
        watch = detectors()
        looked_at(watch, START + 5, WORKING)
        watch.engine(LiveEngine(START + 6, running=1.0, kv_usage=kv), START + 6)
        for second in range(8, 400, 2):
            at = START + second
            if second % 4 == 0:
                looked_at(watch, at, WORKING)
            watch.engine(None, at)
            if second % 10 == 0:
                watch.canary(unanswered(at - 10), at)
            if watch.latch.holds("frozen"):
                told.append((kv, second))
                break
    assert [kv for kv, _ in told] == [0.0] and 60 < told[0][1] <= 80


@pytest.mark.full
def test_an_api_that_answers_nothing_while_gpus_work_has_longer() -> None:
    """A long step may hold an engine that answers its metrics between two steps (llama.cpp)."""
    after = silence(SETTLED, 3000, None, WORKING)
    assert after is not None
    assert after > 1000


def test_no_canary_while_traffic_proves_life() -> None:
    """Tokens that come or requests that end are proof; without them it asks again, and garbage is looked for anyway."""
    watch = detectors()
    watch.canary(answered(SETTLED), SETTLED)
    wanted = []
    for second in range(1, 501):
        at = SETTLED + second
        watch.engine(engine(at, running=3.0, generation_tokens=second * 40.0), at)
        if watch.wants_canary(at):
            wanted.append(second)
            watch.canary(answered(at), at)
    assert wanted[0] > 60
    assert all(b - a > 60 for a, b in pairwise(wanted))
    assert not watch.wants_canary(SETTLED + 501)


def test_while_traffic_pauses_it_is_asked_often() -> None:
    """Its clients have left, or nothing comes any more: that is known within seconds. Our own tokens are no traffic."""
    watch = detectors()
    watch.canary(answered(SETTLED), SETTLED)
    for second in range(1, 8):
        watch.engine(engine(SETTLED + second, generation_tokens=second * 40.0), SETTLED + second)
    asked, tokens = [], 280.0
    for second in range(8, 120):
        if watch.wants_canary(SETTLED + second):
            asked.append(second)
            watch.canary(answered(SETTLED + second), SETTLED + second + 0.2)
            tokens += 8
        watch.engine(engine(SETTLED + second + 0.5, generation_tokens=tokens), SETTLED + second + 0.5)
    assert asked[0] == 9 and min(b - a for a, b in pairwise(asked)) >= 3
    assert all(b - a > 15 for a, b in pairwise(asked) if a > 70), "nobody has asked for a minute"


def test_traffic_right_after_our_own_question_is_seen() -> None:
    """More tokens than our own answer can have are somebody else's: when they cease it asks again within seconds."""
    watch = detectors()
    watch.canary(answered(SETTLED), SETTLED + 0.2)
    for second, tokens in enumerate((8.0, 21.0), start=1):
        watch.engine(engine(SETTLED + second, generation_tokens=tokens), SETTLED + second)
    wanted = [second for second in range(3, 15) if watch.wants_canary(SETTLED + second)]
    assert wanted[0] == 4


def test_a_prefill_proves_nothing_to_the_user() -> None:
    """KV usage that moves keeps an engine from being called frozen, but the canary is still asked."""
    watch = detectors()
    for second in range(0, 60, 2):
        watch.engine(engine(SETTLED + second, running=1.0, kv_usage=second / 1000), SETTLED + second)
    assert watch.wants_canary(SETTLED + 60)


def test_what_sounds_like_garbage_is_asked_again_under_traffic() -> None:
    """Tokens come, so traffic proves life; the second answer must not wait for the next minute."""
    watch = detectors()
    watch.engine(engine(SETTLED, generation_tokens=1.0), SETTLED)
    watch.engine(engine(SETTLED + 1, generation_tokens=2.0), SETTLED + 1)
    watch.canary(answered(SETTLED + 1, "!!!!!!!!"), SETTLED + 1)
    assert watch.wants_canary(SETTLED + 2)
    watch.canary(answered(SETTLED + 2), SETTLED + 2)
    assert not watch.wants_canary(SETTLED + 3)


def test_a_failed_canary_is_asked_again_at_once() -> None:
    """The second strike must not wait for the next round."""
    watch = detectors()
    watch.engine(engine(SETTLED, generation_tokens=1.0), SETTLED)
    watch.engine(engine(SETTLED + 1, generation_tokens=2.0), SETTLED + 1)
    watch.canary(unanswered(SETTLED + 1), SETTLED + 11)
    assert watch.wants_canary(SETTLED + 11)


def test_an_unanswered_canary_during_a_long_prefill_is_no_fault() -> None:
    """It waits behind a prompt of 980K tokens for a quarter of an hour: busy, not frozen."""
    watch = detectors()
    for second in range(0, 1000, 2):
        at = SETTLED + second
        found = watch.engine(engine(at, running=1.0, kv_usage=0.0002 * (second // 10)), at)
        if second % 4 == 0:
            for node in NODES:
                found += watch.sample(node, sample(at, WORKING), at)
        if second % 10 == 0:
            found += watch.canary(unanswered(at - 10), at)
        assert faults(found) == {}
