"""From what is true now to what is told: a fault once when it begins, Cleared once when it is over everywhere."""

from dataclasses import dataclass, field

from sparkwright.supervision.detect.setting import Found
from sparkwright.supervision.events import Cleared, Fault
from sparkwright.supervision.state import Recovery

_ENDS = (Recovery.RELAUNCH, Recovery.STOP, Recovery.REBOOT, Recovery.POWER_CYCLE)


@dataclass
class Latch:
    """retell: seconds after which a trouble is told again with its new figures; what ends the service is told once."""

    retell: float
    _held: dict[str, dict[str, float]] = field(default_factory=dict)

    def set(self, kind: str, subject: str, fault: Fault | None, at: float) -> Found:
        """subject: the node, '' for the whole deployment. fault: None when it is not (or no longer) so."""
        held = self._held.setdefault(kind, {})
        if fault is None:
            return self._over(kind, subject, at)
        told = held.get(subject)
        if told is not None and (fault.recovery in _ENDS or at - told < self.retell):
            return ()
        held[subject] = at
        return (fault,)

    def _over(self, kind: str, subject: str, at: float) -> Found:
        held = self._held[kind]
        if held.pop(subject, None) is None or held:
            return ()
        return (Cleared(at, kind),)

    def holds(self, kind: str, subject: str = "") -> bool:
        return subject in self._held.get(kind, {})

    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind, held in self._held.items() if held)
