"""All that is watched of one node."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkwright.domain.facts import Memory
from sparkwright.domain.live import LiveNode, unwritable_cure
from sparkwright.domain.sample import Sample
from sparkwright.domain.units import gib
from sparkwright.domain.unknown import NOT_ASKED, Unknown, known_or_none
from sparkwright.facts.kernel import OOM
from sparkwright.supervisor.core.detect.gpu import GpuWatch
from sparkwright.supervisor.core.detect.leak import Leak, Trend
from sparkwright.supervisor.core.detect.memory import Guard, Pressure
from sparkwright.supervisor.core.detect.setting import Setting
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.recovery import NOTHING, Needs, of_kernel, worst_needs
from sparkwright.supervisor.core.state import DISK_FULL, Recovery

_RETAINED = re.compile(r"NV_ERR_NO_MEMORY|_memdescAllocInternal")
# The driver's 0x51 line comes on healthy starts, too: below a few dozen it predicts nothing (A2 [C], E6).
_MANY = 24


@dataclass
class KernelWatch:
    """One node. asks: the recovery that its lines since the start ask for, once the service is down.

    Nothing here stops an engine that still answers: the program that an Xid ended, or that the kernel killed, need not
    be a rank. A rank that is ends or hangs, and is seen as that.
    """

    node: str
    refused: int = 0
    asks: Needs = NOTHING

    def grave(self, lines: Sequence[str], at: float) -> Fault | None:
        needs, line = of_kernel(lines)
        if needs is NOTHING:
            return None
        self.asks = worst_needs((self.asks, needs))
        what = f"{self.node}: {needs.why}; fixed by a {needs.recovery}"
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


# Below this a start takes its ranks' folders to memory (remote/process.py).
_FULL = 4 << 20


@dataclass
class NodeWatch:
    """seen: the last sample and when it came; reached: whether its stream still lives; lost_by: the last reason why it
    does not."""

    node: str
    setting: Setting
    reached: bool = False
    lost_by: str = ""
    seen_at: float = 0.0
    last: Sample | None = None
    gpu: GpuWatch = field(init=False)
    guard: Guard = field(init=False)
    leak: Leak = field(init=False)
    pressure: Pressure = field(init=False)
    kernel: KernelWatch = field(init=False)
    _linked: set[str] = field(default_factory=set)
    _own: set[str] = field(default_factory=set)
    _cut: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gpu, self.pressure = GpuWatch(self.node), Pressure(self.node)
        self.begin(0.0)

    def begin(self, at: float) -> None:
        self.guard, self.kernel = Guard(self.node, self.setting, began=at), KernelWatch(self.node)
        self.leak = Leak(self.node, self.setting.scale)
        self._linked.clear()
        self._own.clear()
        self._cut.clear()

    @property
    def memory(self) -> Memory | None:
        return known_or_none(self.last.memory) if self.last and self.reached else None

    def sample(self, sample: Sample, working: bool, finished: float | None, at: float) -> dict[str, Fault | None]:
        """Kind -> the fault, or None where all is well; a kind that is not there is not known now."""
        self.reached, self.lost_by, self.seen_at, self.last = True, "", at, sample
        self.gpu.sample(sample, working, at)
        self.pressure.sample(sample)
        found = {
            "clock-wedge": self.gpu.wedge(at),
            "hot": self.gpu.heat(at),
            "memory-pressure": self.pressure.stalls(at),
            "swap": self.pressure.swaps(at),
            "xid": self.kernel.grave(sample.kernel, at),
            "oom-kill": self.kernel.killed(sample.kernel, at),
            "driver-memory": self.kernel.driver(sample.kernel, at),
        }
        found[f"link-down:{self.node}"] = down = self._links(sample, at)
        if sample.addresses and not down:  # what is down has none
            found[f"address-lost:{self.node}"] = self._addresses(sample, at)
        if sample.unwritable:
            found[self._disk] = self._unwritable(sample.unwritable, at)
        elif not isinstance(sample.disk_free, Unknown):
            found[self._disk] = self._full(sample.disk_free, at)
        return found | self._memory(finished, at)

    def _links(self, sample: Sample, at: float) -> Fault | None:
        """A fault for ports that lost their link since the start: an empty cage never had one."""
        linked = {port for port, up in sample.links.items() if up}
        self._linked |= linked
        down = sorted(self._linked - linked)
        self._cut.update(dict.fromkeys(down, at))
        if not down:
            return None
        what = f"no link on {', '.join(down)} of {self.node}: cable, its other end, or `ip link set {down[0]} down`"
        return Fault(at, f"link-down:{self.node}", what, Recovery.NONE)

    def _addresses(self, sample: Sample, at: float) -> Fault | None:
        """A fault for addresses on the fabric that the node had since the start: ranks wait for each other until they
        are there again."""
        self._own |= sample.addresses & self.setting.fabric
        lost = sorted(self._own - sample.addresses)
        if not lost:
            return None
        what = (
            f"address {', '.join(lost)} of {self.node} on the fabric is gone: `ip -br address` there; whoever manages "
        )
        return Fault(at, f"address-lost:{self.node}", f"{what}its networks has taken it away", Recovery.NONE)

    def seen(self, since: float) -> tuple[str, ...]:
        """Events since `since` that end or delay ranks, each a line."""
        links = [f"link {port} of {self.node} was down" for port, at in sorted(self._cut.items()) if at >= since]
        free = self.last.disk_free if self.last else NOT_ASKED
        full = None if isinstance(free, Unknown) else self._full(free, self.seen_at)
        return (*links, *([full.what] if full else []))

    def _full(self, free: int, at: float) -> Fault | None:
        if free >= _FULL:
            return None
        what = f"disk full on {self.node}: {gib(free)} free in {self.setting.state}; "
        what += "history is lost; logs and the last lines of evidence are in memory until there is room"
        return Fault(at, self._disk, what, Recovery.NONE)

    def _unwritable(self, why: str, at: float) -> Fault:
        """Handled like a full disk: it ends nothing, and what waits for it goes on once it is over."""
        state = self.setting.state
        what = f"{why} on {self.node}: {state} cannot be written, so no rank is stopped or started there. "
        what += unwritable_cure(why, self.node, state)
        return Fault(at, self._disk, what, Recovery.NONE)

    @property
    def _disk(self) -> str:
        return f"{DISK_FULL}:{self.node}"

    def _memory(self, finished: float | None, at: float) -> dict[str, Fault | None]:
        memory = self.memory
        if memory is None:
            return {}
        self.guard.sample(memory, at)
        if self.guard.level:
            self.leak.sample(memory.available, finished, self.guard.floors.refuse, at)
        return {
            "memory-low": self.guard.refuse(memory, at),
            "memory-stop": self.guard.stop(memory, at),
            "leak": self.leak.verdict(self.guard.floors.refuse, at),
        }

    def live(self) -> LiveNode:
        memory, gpu = self.memory, self.gpu.last
        pace = self.leak.pace()
        return LiveNode(
            node=self.node,
            at=self.seen_at,
            reached=self.reached,
            total=memory.total if memory else None,
            available=memory.available if memory else None,
            free=memory.free if memory else None,
            swap_used=memory.swap_total - memory.swap_free if memory else None,
            swap_rate=self.pressure.rate,
            unaccounted=memory.unaccounted if memory else None,
            pressure=self.pressure.stall,
            per_hour=pace.slope * 3600 if pace else None,
            time_left=seconds_left(memory.available, self.guard.floors.refuse, pace) if memory and pace else None,
            gpu_busy=known_or_none(gpu.utilization) if gpu else None,
            gpu_temperature=known_or_none(gpu.temperature) if gpu else None,
            gpu_power=known_or_none(gpu.power) if gpu else None,
            gpu_clock=known_or_none(gpu.clock) if gpu else None,
            blind=self.last.kernel_blind if self.last else "",
            floor=self.guard.floors.refuse,
        )


def seconds_left(available: int, floor: int, pace: Trend) -> float | None:
    """Seconds until the floor as fast as that; None when it does not shrink, or not by more than its noise."""
    shrinks = pace.slope < 0 and -pace.rise > 3 * pace.noise
    return max(available - floor, 0) / -pace.slope if shrinks else None
