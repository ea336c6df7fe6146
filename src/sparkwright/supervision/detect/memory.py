"""One node's memory: the guard at its two floors.

MemAvailable is the figure that the recipes' floors are in; page cache is part of it, so a cache that
grows changes nothing. All bytes.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from sparkwright.domain.facts import Memory
from sparkwright.domain.units import MIB, gib
from sparkwright.supervision.detect.floors import Floors, floors
from sparkwright.supervision.detect.setting import Setting
from sparkwright.supervision.detect.slope import Point, slope
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

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

    def begin(self, at: float) -> None:
        self.began, self.level, self.low = at, 0, False
        self._calm = self._below = 0
        self._first.clear()
        self._last.clear()

    @property
    def floors(self) -> Floors:
        """As given, else from the level; 0 where neither is known."""
        own = floors(self.level)
        return Floors(self.setting.floor or own.refuse, self.setting.stop_floor or own.stop)

    def sample(self, memory: Memory, at: float) -> None:
        self._last.append((at, float(memory.available)))
        if not self.level:
            self._first.append(memory.available)
            if at - self.began >= self.setting.patience.settle or len(self._first) >= _LEVEL_FROM:
                self.level = int(median(self._first))
        self._below = self._below + 1 if memory.available < self.floors.stop else 0
        self._refusing(memory.available)

    def _refusing(self, available: int) -> None:
        floor = self.floors.refuse
        if available < floor:
            self.low, self._calm = True, 0
        elif self.low:
            high = available >= floor + max(_LEAST_BACK, _BACK * floor)
            self._calm = self._calm + 1 if high else 0
            self.low = self._calm < _CALM

    def refuse(self, memory: Memory, at: float) -> Fault | None:
        if not self.low:
            return None
        floor = self.floors.refuse
        what = (
            f"{self.node} has {gib(memory.available)} available, the floor is {gib(floor)}: "
            "no new work until memory has come back"
        )
        return Fault(at, "memory-low", what, Recovery.REFUSE, _ledger(memory))

    def stop(self, memory: Memory, at: float) -> Fault | None:
        floor = self.floors.stop
        if not floor or not (self._below >= _STRIKES or memory.available < floor // 2 or self._falls(floor)):
            return None
        what = (
            f"{self.node} has {gib(memory.available)} available, the second floor is {gib(floor)}: "
            "the engine is stopped while the node still can"
        )
        return Fault(at, "memory-stop", what, Recovery.STOP, _ledger(memory))

    def _falls(self, floor: int) -> bool:
        """Falls without a pause, is below the first floor already, and passes the second within two more samples."""
        points = list(self._last)
        if len(points) < _FALLING or not all(b[1] < a[1] for a, b in pairwise(points)):
            return False
        ahead = _AHEAD * (points[-1][0] - points[0][0]) / (_FALLING - 1)
        now = points[-1][1]
        return now < self.floors.refuse and now + slope(points) * ahead < floor


def _ledger(memory: Memory) -> tuple[str, ...]:
    return (
        f"MemAvailable {gib(memory.available)}, MemFree {gib(memory.free)}, of {gib(memory.total)}",
        f"swap used {gib(memory.swap_total - memory.swap_free)}, held by no counter {gib(memory.unaccounted)}",
    )
