"""Signs that a node runs short of memory whatever its counters say: stalls, and swap in use (not swap that is full)."""

from dataclasses import dataclass

from sparkwright.domain.sample import Sample
from sparkwright.domain.unknown import Unknown
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

# Field guide F1: PSI full avg10 above 1.0 % is NVCheckup's critical level, 0.1 its warning; for swap activity counts,
# not size (PUL serves for hours with 4.8 GB swapped out): more than 256 pages a second's tick, three times (REE).
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
        """By the node's own clock; None for the first sample and after a start of the node."""
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
