"""Processes of this machine: which has ended, and of which that cannot be known."""

import os
import subprocess
import sys

from sparkwright.adapters.machine import MachineCallers, _process_mark
from unit.for_each import for_each


def test_a_process_that_was_killed_has_ended() -> None:
    """Guards leases of a killed call, also while nobody has reaped it; a living one is never said to be gone."""
    callers = MachineCallers()
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        mark = _process_mark(child.pid)
        assert mark.split()[2] == str(child.pid) and not callers.has_ended(mark)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert callers.has_ended(mark)
    assert callers.has_ended(mark)
    assert not callers.has_ended(callers.own_mark())


@for_each(
    "place, pid, start, ended",
    [
        ("", "", "1", True),  # the number of ours was another process's before
        ("other-boot", "", "1", False),
        ("", "x", "1", False),
        ("", "-1", "1", False),
        ("", "4194999", "1", True),  # beyond the largest that there is
    ],
)
def test_a_mark_of_elsewhere_proves_nothing(place: str, pid: str, start: str, ended: bool) -> None:
    """Guards leases of other machines, boots and containers, and what somebody has written by hand."""
    boot, namespace, own, _ = MachineCallers().own_mark().split()
    mark = f"{place or boot} {namespace} {pid or own} {start}"
    assert MachineCallers().has_ended(mark) is ended
    for text in ("", "garbage", f"{mark} more", f"{boot} pid:[1] {own} 1"):
        assert not MachineCallers().has_ended(text)
