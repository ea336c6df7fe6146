"""Each fault is shown when it begins, and over when it is over on all nodes."""

from sparkwright.supervisor.core.detect.setting import Latch
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery


def make_fault(recovery: Recovery = Recovery.NONE) -> Fault:
    return Fault(0.0, "leak", "it leaks", recovery)


def test_reported_once_and_again_only_with_new_figures_later() -> None:
    """A trouble is reported again once a minute, what ends the service never again."""
    latch = Latch(60.0)
    assert [len(latch.set("leak", "", make_fault(), at)) for at in (0.0, 5.0, 59.0, 60.0, 61.0)] == [1, 0, 0, 1, 0]
    ends = Latch(60.0)
    assert [len(ends.set("leak", "", make_fault(Recovery.RELAUNCH), at)) for at in (0.0, 60.0, 600.0)] == [1, 0, 0]


def test_over_when_the_last_node_is_well() -> None:
    """One that is still ill keeps the trouble."""
    latch = Latch(60.0)
    latch.set("leak", "spark-1", make_fault(), 0.0)
    latch.set("leak", "spark-2", make_fault(), 0.0)
    assert latch.set("leak", "spark-1", None, 9.0) == ()
    assert latch.holds("leak", "spark-2")
    assert latch.set("leak", "spark-2", None, 9.0) == (Cleared(9.0, "leak"),)
    assert latch.set("leak", "spark-2", None, 9.0) == ()
    assert not latch.holds("leak", "spark-2")
