"""A frozen engine against a busy one: what moves, how long nothing may, and why."""

from pathlib import Path

import pytest

from sparkwright.domain.sample import GpuSample
from sparkwright.engines.tables import metric_names
from sparkwright.facts.engine_metrics import read
from sparkwright.supervisor.core.detect.gpu import Doing
from sparkwright.supervisor.core.detect.setting import Patience, Setting
from sparkwright.supervisor.core.detect.stuck import allowance
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery
from unit.for_each import for_each
from unit.supervisor.core.detect.figures import (
    IDLE,
    NODES,
    SETTLED,
    SPINNING,
    START,
    WORKING,
    detectors,
    ending_faults,
    engine,
    faults,
    sample,
    settled,
)

CAPTURES = Path(__file__).resolve().parents[6] / "shared" / "captures" / "vllm-0.21.0-1node"
KNOWN = Setting(NODES, True, 1_048_576, 8192, 986.0)


def stuck_fault(
    seconds: int, gpus: dict[str, GpuSample], began: float = SETTLED, **figures: float
) -> tuple[float, Fault] | None:
    """The engine's figures never change again: after how many seconds a fault comes, and which."""
    watch = settled() if began == SETTLED else detectors()
    for second in range(0, seconds, 2):
        at = began + second
        found = watch.engine(engine(at, **figures), at)
        for node, gpu in gpus.items() if second % 4 == 0 else ():
            found += watch.sample(node, sample(at, gpu), at)
        for fault in faults(found).values():
            if fault.recovery is Recovery.RELAUNCH:
                return float(second), fault
    return None


def test_requests_that_run_and_nothing_that_moves_is_frozen() -> None:
    """Found within 20 s beyond the allowance, which is reported with what it rests on."""
    found = stuck_fault(300, dict.fromkeys(NODES, IDLE), running=2.0, kv_usage=0.4)
    assert found is not None
    after, fault = found
    assert 60 < after <= 80
    assert fault.kind == "frozen"
    assert "60 s is allowed" in fault.what
    assert fault.evidence[0] == "last sign of life: the start"


def test_a_fresh_start_may_compile_for_minutes() -> None:
    """The first requests of a start wait for kernels: five times the patience."""
    found = stuck_fault(400, dict.fromkeys(NODES, IDLE), began=START + 1, running=1.0)
    assert found is not None
    assert 298 < found[0] <= 320


def test_all_gpus_that_spin_are_found_sooner() -> None:
    """Busy, faint and without memory traffic on every node: a deadlock in a collective (captures m4, report 001)."""
    found = stuck_fault(300, dict.fromkeys(NODES, SPINNING), running=1.0)
    assert found is not None
    after, fault = found
    assert after <= 40
    assert fault.kind == "spin"
    assert "spark-2: GPU 96 % busy, memory 0 %, 14 W" in fault.evidence[-1]


def test_one_that_spins_while_its_peer_does_not_is_waited_for() -> None:
    """One rank compiles, the other waits for it in a kernel: that is no deadlock before the patience ends."""
    found = stuck_fault(300, {"spark-1": SPINNING, "spark-2": IDLE}, running=1.0)
    assert found is not None
    assert found[0] > 60
    assert found[1].kind == "frozen"


def test_an_idle_engine_is_never_frozen() -> None:
    """Nothing moves where nobody asks, far beyond every allowance."""
    assert stuck_fault(1800, dict.fromkeys(NODES, IDLE)) is None


def test_a_prefill_of_980k_tokens_is_never_touched() -> None:
    """Report 003: 16.6 minutes without a token. The KV usage moves with each chunk, some 8 s, later 20 s apart."""
    watch, usage, chunk_at = settled(), 0.0, SETTLED
    for second in range(0, 1000, 2):
        at = SETTLED + second
        if at >= chunk_at:
            usage, chunk_at = usage + 0.002, at + 8.3 + second / 80
        assert faults(watch.engine(engine(at, running=1.0, kv_usage=usage), at)) == {}
        for node in NODES:
            assert faults(watch.sample(node, sample(at, WORKING), at)) == {}
        assert faults(watch.tick(at + 1)) == {}


def test_rdma_traffic_alone_proves_life() -> None:
    """An engine without a counter that moves in a prefill: every layer of every step still crosses the fabric."""
    watch = settled()
    for second in range(0, 1200, 5):
        at = SETTLED + second
        found = watch.engine(engine(at, running=1.0), at)
        for node in NODES:
            found += watch.sample(node, sample(at, SPINNING, words=second * 10**6), at)
        assert faults(found) == {}


def test_an_engine_that_counts_at_the_end_has_the_time_of_its_longest_prompt() -> None:
    """No KV usage, no RDMA: while its GPU works, twice the expected time of a full context is allowed, then no more."""
    watch, figures = settled(rdma=False), {"running": 1.0, "generation_tokens": 0.0}
    for second in range(0, 2200, 10):
        at = SETTLED + second
        live = engine(at, **figures)
        found = watch.engine(type(live)(at, running=1.0, generation_tokens=5.0), at)
        for node in NODES:
            found += watch.sample(node, sample(at, WORKING), at)
        if faults(found):
            break
    assert 2 * 1_048_576 / 986 < second <= 2 * 1_048_576 / 986 + 20
    assert "a prompt of 1,048,576 tokens" in faults(found)["frozen"].what


def test_a_burst_that_fills_the_queue_is_no_fault() -> None:
    """Hundreds wait, the running ones make tokens: waiting alone reports nothing."""
    watch = settled()
    for second in range(0, 3600, 2):
        at = SETTLED + second
        live = engine(at, running=6.0, waiting=500.0, generation_tokens=second * 90.0, kv_usage=0.99)
        assert faults(watch.engine(live, at)) == {}


def test_compilers_excuse_a_stillness_but_not_for_ever() -> None:
    """nvcc and ptxas that run are work; after half an hour they are not what is waited for."""
    watch = settled()
    for second in range(0, 2400, 5):
        at = SETTLED + second
        found = watch.engine(engine(at, running=1.0), at)
        for node in NODES:
            found += watch.sample(node, sample(at, IDLE, compilers=2), at)
        if ending_faults(found):
            break
    assert 1800 < second <= 1800 + 80


def test_what_is_frozen_is_reported_once() -> None:
    """The machine needs one event; a second one would be a second incident."""
    watch = settled()
    told = [ending_faults(watch.engine(engine(SETTLED + n, running=1.0), SETTLED + n)) for n in range(0, 200, 2)]
    assert sum(bool(one) for one in told) == 1


@for_each(
    "setting, kv, doing, fresh, seconds",
    [
        (KNOWN, 0.5, [Doing.WORKING], False, 60.0),
        (KNOWN, 0.5, [Doing.WORKING], True, 300.0),
        (Setting(NODES, True, 0, 65536, 300.0), 0.5, [], False, 4 * 65536 / 300),
        (KNOWN, None, [Doing.IDLE, Doing.IDLE], False, 60.0),
        (KNOWN, None, [Doing.IDLE, Doing.WORKING], False, 2 * 1_048_576 / 986),
        (KNOWN, None, [], False, 2 * 1_048_576 / 986),
        (Setting(NODES), None, [Doing.WORKING], False, 600.0),
        (Setting(NODES, patience=Patience().scaled(0.1)), 0.5, [], False, 6.0),
    ],
)
def test_the_allowance_rests_on_what_is_known(
    setting: Setting, kv: float | None, doing: list[Doing], fresh: bool, seconds: float
) -> None:
    """A step where each step is reported, a prompt where only its end is, nothing more for a GPU that does nothing."""
    live = engine(0.0)
    live = type(live)(0.0, running=1.0, kv_usage=kv)
    found = allowance(setting, live, doing, fresh)
    assert found.seconds == pytest.approx(seconds)
    assert found.why


@pytest.mark.full
def test_the_recorded_pages_of_vllm() -> None:
    """Nothing is wrong from idle to 30 running requests and back; the busy page for ever is a frozen engine."""
    if not CAPTURES.is_dir():
        pytest.skip("data: ../shared is absent: the recorded pages are there")
    pages = {name: (CAPTURES / f"metrics-{name}.txt").read_text() for name in ("idle", "busy", "after")}
    watch, told = settled(rdma=False), dict[float, set[str]]()
    course = ["idle"] * 30 + ["busy"] * 20 + ["after"] * 100 + ["busy"] * 40
    for number, name in enumerate(course):
        at = SETTLED + 2.0 * number
        if kinds := set(ending_faults(watch.engine(read(pages[name], metric_names("vllm"), at), at))):
            told[2.0 * number] = kinds
    assert list(told.values()) == [{"frozen"}]
    assert 300 + 60 < next(iter(told)) <= 300 + 80
