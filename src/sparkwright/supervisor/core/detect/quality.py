"""The choice of the next short probe of the answers, and the probes that fail turn after turn.

A model may fail a probe by chance, so one failure is nothing. Each is asked with other texts than the time before.
Where a healthy engine fails fewer than 1.5 % of single probes (200 of 200 passed: the 95 % bound), three in a row are
a false alarm once in 300,000 turns, and with a turn every five minutes once in about three years.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

# Canaries between two probes; between two while one has failed; failures in a row that are reported.
EVERY, AGAIN, STRIKES = 20, 3, 3


@dataclass
class Quality:
    """names: of the probes, in turn. answered: canaries since the last one. asked: turns, which are also the seeds."""

    names: Sequence[str]
    answered: int = 0
    asked: int = 0
    _next: int = 0
    _strikes: dict[str, int] = field(default_factory=dict)
    _why: dict[str, str] = field(default_factory=dict)

    def due(self) -> str:
        """The probe to ask now, '' for none. What has failed is asked again before it is another's turn."""
        if not self.names or self.answered < (AGAIN if self._strikes else EVERY):
            return ""
        failing = [name for name, count in self._strikes.items() if count < STRIKES]
        return failing[0] if failing else self.names[self._next % len(self.names)]

    def judge(self, name: str, why: str | None) -> None:
        """Counts a result. why: the failure, '' for passed; None if it proves nothing: no answer, or a model that
        follows none."""
        self.answered, self.asked = 0, self.asked + 1
        if name == self.names[self._next % len(self.names)]:
            self._next += 1
        if why:
            self._strikes[name] = self._strikes.get(name, 0) + 1
            self._why.setdefault(name, why)
        elif why is not None:
            self._strikes.pop(name, None)
            self._why.pop(name, None)

    @property
    def wrong(self) -> dict[str, str]:
        """Probe -> how it fails, of those that are reported."""
        return {name: self._why[name] for name, count in self._strikes.items() if count >= STRIKES}
