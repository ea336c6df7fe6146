"""The figures that one log gives, each as it stands after the last line that spoke of it."""

from sparkwright.domain.deployment import LogEvent

# A fact of this name says that an engine begins anew: whoever restarts a container continues its log.
START = "start"
_PLUS = "+"


class Figures:
    """facts: figure -> value. A fact named `kv_gib+v` adds to `kv_gib`: engines tell pools and draft models apart.

    Processes of one log that say the same (the ranks of tp on one node) do not add up: the first one counts.
    """

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self._speakers: dict[str, str] = {}

    def note(self, event: LogEvent) -> dict[str, str]:
        """Takes in what a line says; returns the figures that it changed."""
        changed: dict[str, str] = {}
        for name, value in event.facts:
            if name == START:
                self._forget()
                continue
            figure, plus, _ = name.partition(_PLUS)
            if not plus or self._speakers.setdefault(figure, event.who) == event.who:
                changed[figure] = self.facts[figure] = self._sum(figure, value) if plus else value
        return changed

    def _sum(self, figure: str, value: str) -> str:
        return f"{float(self.facts.get(figure, '0')) + float(value):.2f}"

    def _forget(self) -> None:
        self.facts.clear()
        self._speakers.clear()
