"""New lines of the kernel log: grave errors of the GPU, and what the kernel killed for want of memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.supervision.events import Fault
from sparkwright.supervision.recovery import NOTHING, Needs, of_kernel, worst
from sparkwright.supervision.state import Recovery

OOM = re.compile(r"Out of memory: Killed process|oom-kill:|Memory cgroup out of memory", re.IGNORECASE)
_RETAINED = re.compile(r"NV_ERR_NO_MEMORY|_memdescAllocInternal")
# The driver's 0x51 line comes on healthy starts, too: below a few dozen it predicts nothing (A2 [C], E6).
_MANY = 24


@dataclass
class KernelWatch:
    """One node. asks: what its lines since the start say that it takes, once the service is down.

    Nothing here stops an engine that still answers: the program that an Xid ended, or that the kernel killed, need not
    be a rank. A rank that is ends or hangs, and is seen as that.
    """

    node: str
    refused: int = 0
    asks: Needs = NOTHING

    def begin(self) -> None:
        self.refused, self.asks = 0, NOTHING

    def grave(self, lines: Sequence[str], at: float) -> Fault | None:
        needs, line = of_kernel(lines)
        if needs is NOTHING:
            return None
        self.asks = worst((self.asks, needs))
        what = f"{self.node}: {needs.why}; mended by a {needs.recovery}"
        return Fault(at, "xid", what, Recovery.NONE, (line[:300],))

    def killed(self, lines: Sequence[str], at: float) -> Fault | None:
        found = [line[:300] for line in lines if OOM.search(line)]
        if not found:
            return None
        what = f"the kernel of {self.node} ended a process for want of memory"
        return Fault(at, "oom-kill", what, Recovery.NONE, tuple(found[-3:]))

    def driver(self, lines: Sequence[str], at: float) -> Fault | None:
        found = [line[:300] for line in lines if _RETAINED.search(line)]
        self.refused += len(found)
        if not found or self.refused < _MANY:
            return None
        what = f"the driver of {self.node} was refused memory {self.refused} times since the start (0x51)"
        return Fault(at, "driver-memory", what, Recovery.NONE, tuple(found[-1:]))
