"""A rank that is stopped is not busy, however new its start is."""

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.sample import HaltedProcess
from sparkwright.supervisor.core.detect.detectors import Detectors
from sparkwright.supervisor.core.detect.stuck import Halted
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery
from unit.supervisor.core.detect.figures import IDLE, NODES, START, detectors, ending_faults, engine, sample, unanswered

WORKER = HaltedProcess(4711, "VLLM::Worker_TP")
RANK = "rank 1 on spark-2"


def look_if_doubtful(watch: Detectors, at: float, found: tuple[HaltedProcess, ...]) -> dict[str, Fault]:
    """Looks as the source does: only while there is doubt."""
    return ending_faults(watch.looked(RANK, found, at)) if watch.doubts(at) else {}


def test_a_worker_that_is_stopped_soon_after_the_start_is_found_in_seconds() -> None:
    """Kernels may compile for five minutes then, but not those of a stopped process: found within 20 to 40 s."""
    watch, compiling = detectors(), 2
    for second in range(12, 100):
        at = START + second
        found = ending_faults(watch.engine(engine(at, running=1.0), at))
        found |= ending_faults(watch.sample("spark-1", sample(at, IDLE, compilers=compiling), at))
        found |= look_if_doubtful(watch, at, (WORKER,)) if second % 5 == 0 else {}
        if found:
            break
    assert 20 <= second - 12 <= 25
    fault = found["frozen"]
    assert fault.recovery is Recovery.RELAUNCH
    assert "rank 1 on spark-2: process 4711 (VLLM::Worker_TP) is stopped (state T: SIGSTOP)" in fault.what
    assert fault.evidence[0] == f"{RANK}: {WORKER}"
    assert any("running 1" in line for line in fault.evidence)


def test_an_engine_that_makes_tokens_is_never_looked_into() -> None:
    """A stopped helper that nobody waits for is nobody's fault, and looking costs something."""
    watch = detectors()
    for second in range(0, 600, 2):
        at = START + second
        watch.engine(engine(at, running=1.0, generation_tokens=second * 9.0), at)
        assert not watch.doubts(at + 1)


def test_without_requests_the_canary_decides() -> None:
    """Nobody waits for a stopped rank until somebody asks: then it is looked into and found."""
    watch = detectors()
    asked = START + 120
    for second in range(0, 130, 5):
        watch.engine(engine(START + second), START + second)
        assert not watch.doubts(START + second)
    watch.canary(unanswered(asked), asked + 10)
    told = [second for second in range(10, 60, 5) if look_if_doubtful(watch, asked + second, (WORKER,))]
    assert told == [20]


def test_while_it_does_not_serve_nothing_is_looked_into() -> None:
    """Ranks that load have their own patience."""
    watch = detectors()
    watch.engine(engine(START, running=1.0), START)
    assert watch.doubts(START + 30)
    watch.end()
    assert not watch.doubts(START + 60)


def test_what_was_stopped_before_a_start_is_forgotten_by_it() -> None:
    """The processes of the start before are gone."""
    watch = detectors()
    for second in range(0, 16, 5):
        watch.engine(engine(START + second, running=1.0), START + second)
        look_if_doubtful(watch, START + second, (WORKER,))
    watch.begin(START + 16)
    watch.engine(engine(START + 17, running=1.0), START + 17)
    assert ending_faults(watch.tick(START + 40)) == {}


def test_all_ranks_that_are_stopped_are_evidence() -> None:
    """The first is named, each is shown."""
    watch = Halted(20.0)
    for at in (0.0, 10.0):
        for rank, node in enumerate(NODES):
            watch.look(f"rank {rank} on {node}", (HaltedProcess(10 + rank, paused=True),), at)
    fault = watch.verdict(20.0, 12.0)
    assert fault and fault.what.startswith("rank 0 on spark-1: its container is paused (docker pause)")
    assert [line.partition(":")[0] for line in fault.evidence] == ["rank 0 on spark-1", "rank 1 on spark-2"]


@given(st.lists(st.tuples(st.floats(0.5, 40), st.booleans()), max_size=20), st.floats(0, 60))
def test_a_moment_of_being_stopped_is_never_a_fault(looks: list[tuple[float, bool]], still: float) -> None:
    """A stop counts only if each look of the last ten seconds saw it, whatever is inspected and when."""
    watch, at, told = Halted(20.0), 1000.0, list[tuple[float, bool]]()
    for wait, stopped in looks:
        at += wait
        told.append((at, stopped))
        watch.look(RANK, (WORKER,) if stopped else (), at)
        if watch.verdict(still, at):
            assert still >= 20
            late = [stopped for when, stopped in told if when > at - 10]
            assert all(late) and len(told) > 1 and told[-2][1]
