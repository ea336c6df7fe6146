"""Ranks with a process that is stopped: those can neither work nor compile, however new the start is."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkwright.domain.sample import Halt
from sparkwright.domain.units import duration
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

# Whoever looks into a process (py-spy, a core dump) stops it for a moment: it must be found so again half of the
# patience later, and nothing may have moved for all of it.
_LASTING = 0.5
_SHOWN = 3


@dataclass
class Halted:
    """patience: seconds of stillness. The looks are made only while an engine stands still."""

    patience: float
    _found: dict[str, tuple[float, float, tuple[Halt, ...]]] = field(default_factory=dict)

    def begin(self) -> None:
        self._found.clear()

    def look(self, rank: str, halts: Sequence[Halt], at: float) -> None:
        """rank: in words. What was found long before is another story."""
        before = self._found.pop(rank, None)
        if halts:
            since = before[0] if before and at - before[1] <= self.patience else at
            self._found[rank] = (since, at, tuple(halts))

    def verdict(self, still: float, at: float) -> Fault | None:
        """RELAUNCH as `frozen`. still: seconds in which nothing but compilers moved while requests ran."""
        held = {rank: halts for rank, (since, last, halts) in self._found.items() if self._lasts(since, last, at)}
        if still < self.patience or not held:
            return None
        first, halts = next(iter(held.items()))
        what = f"{first}: {halts[0]}, and nothing has moved for {duration(still)} while requests run"
        told = tuple(f"{rank}: {halt}" for rank, halts in held.items() for halt in halts[:_SHOWN])
        return Fault(at, "frozen", what, Recovery.RELAUNCH, told)

    def _lasts(self, since: float, last: float, at: float) -> bool:
        return last - since >= _LASTING * self.patience and at - last <= self.patience
