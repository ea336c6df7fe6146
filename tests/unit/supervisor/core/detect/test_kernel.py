"""New lines of the kernel log."""

import pytest

from sparkwright.supervisor.core.detect.node import KernelWatch
from sparkwright.supervisor.core.state import Recovery

XID = "2026-11-21T22:10:04+00:00 spark-1 kernel: NVRM: Xid (PCI:000f:01:00): {}, pid=4711, name=python3"
OOM = "2026-11-21T22:10:04+00:00 spark-1 kernel: Out of memory: Killed process 4711 (VLLM::Worker) total-vm:98765432kB"
MEMDESC = (
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from "
    "_memdescAllocInternal(pMemDesc) @ mem_desc.c:1359"
)


@pytest.mark.parametrize(
    ("number", "recovery"),
    [(43, Recovery.RELAUNCH), (79, Recovery.POWER_CYCLE), (119, Recovery.REBOOT), (154, Recovery.REBOOT)],
)
def test_an_xid_is_reported_and_asks_for_what_fixes_it(number: int, recovery: Recovery) -> None:
    """An Xid of the catastrophic set is reported. The ended program is unknown: an engine that answers stays."""
    watch = KernelWatch("spark-1")
    found = watch.grave(["something else", XID.format(number)], 1.0)
    assert found is not None
    assert (found.recovery, found.evidence) == (Recovery.NONE, (XID.format(number),))
    assert watch.asks.recovery is recovery
    assert watch.grave(["nothing more"], 2.0) is None
    assert watch.asks.recovery is recovery


@pytest.mark.parametrize(
    "line",
    [XID.format(13), XID.format("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")],
)
def test_other_xids_are_left_to_the_ranks_own_end(line: str) -> None:
    """Any faulty program can cause it, and nothing is needed any more."""
    watch = KernelWatch("spark-1")
    assert watch.grave([line], 1.0) is None
    assert watch.asks.recovery is Recovery.NONE


def test_the_gravest_of_several_counts() -> None:
    """43 often follows what broke the GPU."""
    watch = KernelWatch("spark-1")
    found = watch.grave([XID.format(43), XID.format(79), XID.format(119)], 1.0)
    assert found is not None
    assert found.evidence == (XID.format(79),)
    watch.grave([XID.format(119)], 2.0)
    assert watch.asks.recovery is Recovery.POWER_CYCLE


def test_what_the_kernel_killed_is_reported_and_stops_nothing() -> None:
    """It may be a desktop program; a rank that was killed is seen to end."""
    watch = KernelWatch("spark-1")
    found = watch.killed([OOM], 1.0)
    assert found is not None
    assert (found.recovery, found.evidence) == (Recovery.NONE, (OOM,))
    assert watch.killed([XID.format(43)], 1.0) is None


def test_one_line_of_the_driver_means_nothing() -> None:
    """It comes on healthy starts: only dozens since the start are worth reporting."""
    watch = KernelWatch("spark-1")
    told = [watch.driver([MEMDESC], 1.0) is not None for _ in range(26)]
    assert told.count(True) == 3
    assert watch.driver([], 1.0) is None
