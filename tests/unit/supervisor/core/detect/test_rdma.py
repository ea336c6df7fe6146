"""RDMA counters while tokens come."""

from unit.supervisor.core.detect.figures import NODES, SETTLED, WORKING, cleared, detectors, engine, faults, sample


def rdma_faults(words: dict[str, int], seconds: int, tokens: float = 40.0, **setting: bool) -> set[str]:
    """words: per second and node. The kinds reported."""
    watch, told = detectors(**setting), set()
    for second in range(0, seconds, 2):
        at = SETTLED + second
        found = watch.engine(engine(at, running=1.0, generation_tokens=tokens * second, kv_usage=second / 9999), at)
        for node in NODES if second % 4 == 0 else ():
            found += watch.sample(node, sample(at, WORKING, words=words[node] * second), at)
        told |= set(faults(found))
    return told


def test_tokens_without_rdma_traffic_are_reported() -> None:
    """The ranks have fallen back to sockets: slow, and no error anywhere."""
    assert rdma_faults({"spark-1": 0, "spark-2": 0}, 120) == {"rdma-still"}
    assert rdma_faults({"spark-1": 10**6, "spark-2": 0}, 120) == {"rdma-still"}


def test_traffic_on_both_is_as_it_should_be() -> None:
    """The little that a pipeline of two stages hands over is traffic, too."""
    assert rdma_faults({"spark-1": 10**6, "spark-2": 10**6}, 120) == set()
    assert rdma_faults({"spark-1": 2048, "spark-2": 2048}, 120) == set()


def test_no_rdma_no_verdict() -> None:
    """Still counters report nothing if the plan uses sockets, or nothing is asked."""
    assert rdma_faults({"spark-1": 0, "spark-2": 0}, 120, rdma=False) == set()
    assert rdma_faults({"spark-1": 0, "spark-2": 0}, 120, tokens=0.0) == set()


def test_it_is_over_with_the_first_traffic() -> None:
    """The recovery is reported once."""
    watch, over = detectors(), set()
    for second in range(0, 120, 4):
        at = SETTLED + second
        watch.engine(engine(at, running=1.0, generation_tokens=second * 40.0), at)
        for node in NODES:
            over |= cleared(watch.sample(node, sample(at, WORKING, words=max(0, second - 80) * 10**6), at))
    assert over == {"rdma-still"}
