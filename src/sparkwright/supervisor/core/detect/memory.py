"""One node's memory: two floors, the guard at both, and the signs of a shortage. All bytes.

MemAvailable is the figure that the recipes' floors are in; page cache is part of it, so a growing cache changes
nothing.
"""

from collections import deque
from itertools import pairwise
from statistics import median

from sparkwright.domain.facts import Memory
from sparkwright.domain.sample import Sample
from sparkwright.domain.units import MIB, gib
from sparkwright.domain.unknown import Unknown
from sparkwright.domain.values import dataclass, field
from sparkwright.planner.floors import MemoryFloors, floors
from sparkwright.supervisor.core.detect.leak import Point, fit_slope
from sparkwright.supervisor.core.detect.setting import Setting
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery

# Back above the floor by a twentieth of it, at least 256 MiB, for three samples: else the gateway closes and opens.
_BACK, _LEAST_BACK, _CALM = 0.05, 256 * MIB, 3
# A spike of 7.4 GiB has been seen (RYD, F1), so a fall that will pass the second floor within two samples is acted on.
_STRIKES, _FALLING, _AHEAD = 2, 4, 2.0
_LEVEL_FROM = 12


@dataclass
class Guard:
    """level: MemAvailable as it was after the start; until it is known only floors that were given count."""

    node: str
    setting: Setting
    level: int = 0
    began: float = 0.0
    low: bool = False
    _calm: int = 0
    _below: int = 0
    _first: list[int] = field(default_factory=list)
    _last: deque[Point] = field(default_factory=lambda: deque(maxlen=_FALLING))

    @property
    def floors(self) -> MemoryFloors:
        """The floors of the setting, else of the level; 0 if neither is known."""
        own = floors(self.level)
        return MemoryFloors(self.setting.floor or own.refuse, self.setting.stop_floor or own.stop)

    def sample(self, memory: Memory, at: float) -> None:
        self._last.append((at, float(memory.available)))
        if not self.level:
            self._first.append(memory.available)
            if at - self.began >= self.setting.patience.settle or len(self._first) >= _LEVEL_FROM:
                self.level = int(median(self._first))
        self._below = self._below + 1 if memory.available < self.floors.stop else 0
        floor = self.floors.refuse
        if memory.available < floor:
            self.low, self._calm = True, 0
        elif self.low:
            high = memory.available >= floor + max(_LEAST_BACK, _BACK * floor)
            self._calm = self._calm + 1 if high else 0
            self.low = self._calm < _CALM

    def refuse(self, memory: Memory, at: float) -> Fault | None:
        if not self.low:
            return None
        what = f"{self.node} has {gib(memory.available)} available, the floor is {gib(self.floors.refuse)}: "
        what += "no new work until memory has come back"
        return Fault(at, "memory-low", what, Recovery.REFUSE, _ledger(memory))

    def stop(self, memory: Memory, at: float) -> Fault | None:
        floor = self.floors.stop
        if not floor or not (self._below >= _STRIKES or memory.available < floor // 2 or self._falls(floor)):
            return None
        what = f"{self.node} has {gib(memory.available)} available, the second floor is {gib(floor)}: "
        what += "the engine is stopped while the node still can"
        return Fault(at, "memory-stop", what, Recovery.STOP, _ledger(memory))

    def _falls(self, floor: int) -> bool:
        """Falls without a pause, is below the first floor already, and passes the second within two more samples."""
        points = list(self._last)
        if len(points) < _FALLING or not all(b[1] < a[1] for a, b in pairwise(points)):
            return False
        ahead = _AHEAD * (points[-1][0] - points[0][0]) / (_FALLING - 1)
        now = points[-1][1]
        return now < self.floors.refuse and now + fit_slope(points) * ahead < floor


def _ledger(memory: Memory) -> tuple[str, ...]:
    return (
        f"MemAvailable {gib(memory.available)}, MemFree {gib(memory.free)}, of {gib(memory.total)}",
        f"swap used {gib(memory.swap_total - memory.swap_free)}, held by no counter {gib(memory.unaccounted)}",
    )


# PSI full avg10 above 1.0 % is what owners' tools call critical, 0.1 a warning; for swap activity counts,
# not size (owners serve for hours with 4.8 GB swapped out): more than 256 pages in a second, three times.
_STALL, _STALL_OVER, _STALLS = 1.0, 0.1, 3
_PAGES, _SWAPS = 256.0, 3


@dataclass
class Pressure:
    """One node. rate: pages a second, as last seen."""

    node: str
    rate: float | None = None
    stall: float | None = None
    _stalls: int = 0
    _swaps: int = 0
    _pages: tuple[float, int] | None = None

    def sample(self, sample: Sample) -> None:
        self.stall = None if isinstance(sample.stall_full, Unknown) else sample.stall_full
        level = _STALL_OVER if self._stalls >= _STALLS else _STALL
        self._stalls = self._stalls + 1 if self.stall is not None and self.stall > level else 0
        self.rate = self._rate(sample)
        self._swaps = self._swaps + 1 if self.rate is not None and self.rate > _PAGES else 0

    def _rate(self, sample: Sample) -> float | None:
        """Swapped pages a second by the node's own clock; None for the first sample and after a start of the node."""
        if isinstance(sample.swap_pages, Unknown):
            return None
        before, self._pages = self._pages, (sample.at, sample.swap_pages)
        if before is None or sample.at <= before[0] or sample.swap_pages < before[1]:
            return None
        return (sample.swap_pages - before[1]) / (sample.at - before[0])

    def stalls(self, at: float) -> Fault | None:
        if self._stalls < _STALLS:
            return None
        what = f"all work on {self.node} waited for memory in {self.stall:.1f} % of the last 10 s"
        return Fault(at, "memory-pressure", what, Recovery.NONE, (f"/proc/pressure/memory full avg10={self.stall}",))

    def swaps(self, at: float) -> Fault | None:
        if self._swaps < _SWAPS:
            return None
        what = f"{self.node} swaps {self.rate:.0f} pages a second: what serves is being written out and read back"
        return Fault(at, "swap", what, Recovery.NONE, (f"pswpin + pswpout: {self.rate:.0f} pages a second",))
