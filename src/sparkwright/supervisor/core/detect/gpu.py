"""The state of a GPU by its figures: idle, working, or spinning; a wedged clock; heat."""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from sparkwright.domain.sample import GpuSample, Sample
from sparkwright.domain.unknown import Unknown, known_or_none
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery

# Owners report of a GB10 that waits in a kernel: 96 % busy at 10-18 W, memory untouched; decoding takes 30-60 W. Seen
# on an H200: a kernel that only waits takes 126 W as one block and 257 W on all SMs, always with memory at 0 %, where
# copying takes 413 W with memory at 100 %.
_BUSY, _FAINT_W = 90.0, 20.0
_PART_OF_USUAL = 0.4
_IDLE = 10.0
# In every reading of some 30 s; the pinned clocks that owners report are 611 to 728 MHz.
_WEDGED_MHZ, _WEDGED_W, _READINGS = 1400.0, 40.0, 6
# Published soaks stay at 79 to 86 degrees.
_HOT, _COOL = 90.0, 87.0
# Readings of one minute and more, so that a burst does not make the usual.
_KEPT, _ENOUGH = 60, 6


class Doing(StrEnum):
    UNKNOWN = "unknown"
    IDLE = "idle"
    WORKING = "working"
    SPINNING = "spinning"


@dataclass
class GpuWatch:
    """One node's GPU. `sample` takes each reading once; working: whether the engine made tokens just then."""

    node: str
    doing: Doing = Doing.UNKNOWN
    read_at: float = 0.0
    last: GpuSample | None = None
    wedged: int = 0
    _hot: bool = False
    _seen: float = 0.0
    _power: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _memory: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def sample(self, sample: Sample, working: bool, at: float) -> None:
        gpu = sample.gpu
        if isinstance(gpu, Unknown):
            self.doing, self.last = Doing.UNKNOWN, None
        elif sample.gpu_at != self._seen:
            self._seen, self.read_at, self.last = sample.gpu_at, at, gpu
            self._read(gpu, working)

    def glance(self, gpu: GpuSample, at: float) -> None:
        """Updates the present state; only readings of samples are counted."""
        self.doing, self.read_at = self._doing(gpu), at

    def _read(self, gpu: GpuSample, working: bool) -> None:
        busy, power = known_or_none(gpu.utilization), known_or_none(gpu.power)
        if working and busy is not None and busy >= _BUSY / 2:
            self._power.extend([] if power is None else [power])
            self._memory.extend([] if isinstance(gpu.memory_busy, Unknown) else [gpu.memory_busy])
        self.doing = self._doing(gpu)
        slow = (clock := known_or_none(gpu.clock)) is not None and 0 < clock < _WEDGED_MHZ
        faint = power is not None and power < _WEDGED_W
        self.wedged = self.wedged + 1 if busy is not None and busy >= _BUSY and slow and faint else 0

    def _doing(self, gpu: GpuSample) -> Doing:
        busy = known_or_none(gpu.utilization)
        if busy is None:
            return Doing.UNKNOWN
        if busy < _IDLE:
            return Doing.IDLE
        power = known_or_none(gpu.power)
        faint = power is not None and power <= max(_FAINT_W, _PART_OF_USUAL * (self.usual_power or 0.0))
        return Doing.SPINNING if busy >= _BUSY and (faint or self._dry(gpu)) else Doing.WORKING

    def _dry(self, gpu: GpuSample) -> bool:
        """Memory is idle although it moves when this GPU works: not every driver reports it on a GB10."""
        memory = known_or_none(gpu.memory_busy)
        return memory == 0 and len(self._memory) >= _ENOUGH and median(self._memory) >= 5

    @property
    def usual_power(self) -> float | None:
        return median(self._power) if len(self._power) >= _ENOUGH else None

    def summary(self) -> str:
        """`spark-1: GPU 96 % busy, memory 0 %, 14 W (usually 62 W), 2411 MHz`."""
        gpu = self.last
        if gpu is None:
            return f"{self.node}: GPU not readable"
        usual = f" (usually {self.usual_power:.0f} W)" if self.usual_power else ""
        return (
            f"{self.node}: GPU {_told(gpu.utilization)} % busy, memory {_told(gpu.memory_busy)} %, "
            f"{_told(gpu.power)} W{usual}, {_told(gpu.clock)} MHz"
        )

    def wedge(self, at: float) -> Fault | None:
        if self.wedged < _READINGS:
            return None
        what = f"the GPU of {self.node} is pinned to a low clock under load, without a reason that it reports"
        what += ": only cutting its power for a minute is known to help"
        return Fault(at, "clock-wedge", what, Recovery.NONE, (self.summary(),))

    def heat(self, at: float) -> Fault | None:
        degrees = known_or_none(self.last.temperature) if self.last else None
        self._hot = degrees is not None and degrees >= (_COOL if self._hot else _HOT)
        if not self._hot:
            return None
        what = f"the GPU of {self.node} is at {degrees:g} degrees; up to 86 is normal under load"
        return Fault(at, "hot", what, Recovery.NONE, (self.summary(),))


def _told(value: float | Unknown) -> str:
    return "?" if isinstance(value, Unknown) else f"{value:.0f}"
