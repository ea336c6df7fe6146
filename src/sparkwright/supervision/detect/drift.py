"""Speculation and the prefix cache against their own past: both fall before output becomes garbage, or speed goes.

Both depend on what is asked: code is drafted better than prose, a new project has no prefix. So a fall counts only when
it is far below what this start has ever shown, for several windows in a row.
"""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from sparkwright.domain.live import LiveEngine
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

_HISTORY, _ENOUGH, _STRIKES = 60, 8, 3
# Field guide F3, E99: acceptance was 24 % down half a minute before garbled windows; a mean length of 2.0 or less under
# load is what GK and SB call a precursor, which means something only where more than two tokens are usual.
_DOWN, _LOW, _USUAL = 0.76, 2.0, 2.5
# Windows hold so many drafts or queried tokens: some hundred steps, and a few long prompts.
_DRAFTS, _QUERIED = 300.0, 20000.0
# A hit rate that has fallen to a quarter of what was usual, where a third and more was.
_HITS_DOWN, _HITS_USUAL = 0.25, 0.3


@dataclass
class Series:
    """Values of windows. The reference is what lies before the windows that are judged."""

    values: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))

    @property
    def ready(self) -> bool:
        return len(self.values) >= _ENOUGH + _STRIKES

    @property
    def usual(self) -> float:
        return median(list(self.values)[:-_STRIKES])

    @property
    def latest(self) -> list[float]:
        return list(self.values)[-_STRIKES:]

    def below(self, part: float) -> bool:
        """The latest are all below `part` of the usual, and below all that came before them."""
        earlier = list(self.values)[:-_STRIKES]
        return self.ready and max(self.latest) < min(part * self.usual, min(earlier))


@dataclass
class Drift:
    """acceptance: mean tokens of a step; hits: prefix hit rate, 0 to 1, both None until a window is full."""

    _from: LiveEngine | None = None
    _hits_from: LiveEngine | None = None
    _accepted: Series = field(default_factory=Series)
    _hits: Series = field(default_factory=Series)
    _held: set[str] = field(default_factory=set)

    def begin(self) -> None:
        self._from = self._hits_from = None
        self._accepted, self._hits = Series(), Series()
        self._held.clear()

    def engine(self, live: LiveEngine) -> None:
        drafts = _grown(self._from, live, "drafts")
        if drafts is None or drafts < 0:
            self._from = live
        elif drafts >= _DRAFTS:
            self._accepted.values.append(1 + (_grown(self._from, live, "accepted_tokens") or 0.0) / drafts)
            self._from = live
        queried = _grown(self._hits_from, live, "prefix_queries")
        if queried is None or queried < 0:
            self._hits_from = live
        elif queried >= _QUERIED:
            self._hits.values.append((_grown(self._hits_from, live, "prefix_hits") or 0.0) / queried)
            self._hits_from = live

    def acceptance(self, at: float) -> Fault | None:
        series = self._accepted
        if not self._fell("acceptance", series, _DOWN):
            return None
        what = f"tokens accepted a step fell to {series.latest[-1]:.2f}, {series.usual:.2f} is usual: {_PRECURSOR}"
        return Fault(at, "drift-acceptance", what, Recovery.NONE, _shown("mean acceptance length", series))

    def low(self, at: float) -> Fault | None:
        series = self._accepted
        if not (series.ready and series.usual >= _USUAL and max(series.latest) <= _LOW):
            return None
        what = f"only {series.latest[-1]:.2f} tokens a step are accepted under load, {series.usual:.2f} is usual"
        return Fault(at, "acceptance-low", what, Recovery.NONE, _shown("mean acceptance length", series))

    def prefix(self, at: float) -> Fault | None:
        series = self._hits
        usual = series.ready and series.usual >= _HITS_USUAL
        if not (usual and self._fell("prefix", series, _HITS_DOWN)):
            return None
        what = f"the prefix cache's hit rate fell to {series.latest[-1]:.0%}, {series.usual:.0%} is usual"
        return Fault(at, "drift-prefix", what, Recovery.NONE, _shown("hit rate", series))

    def _fell(self, name: str, series: Series, part: float) -> bool:
        """Held until the last window is near the usual again."""
        if series.below(part):
            self._held.add(name)
        elif name in self._held and series.latest[-1] >= (1 + part) / 2 * series.usual:
            self._held.discard(name)
        return name in self._held


_PRECURSOR = "a precursor of garbled output"


def _grown(before: LiveEngine | None, now: LiveEngine, name: str) -> float | None:
    first, last = getattr(before, name, None), getattr(now, name)
    return None if first is None or last is None else last - first


def _shown(what: str, series: Series) -> tuple[str, ...]:
    return (f"{what}, latest: {', '.join(f'{value:.2f}' for value in series.latest)}; usual {series.usual:.2f}",)
