"""What the sources share: where they tell what they found, and what they need to find it."""

import asyncio
from dataclasses import dataclass, field

from sparkwright.app.diagnose import year_of
from sparkwright.app.diagnose_watch import Watching
from sparkwright.app.supervise.site import Site
from sparkwright.domain.diagnosis import CONFIDENT, Cause
from sparkwright.supervision.detect.detectors import Detectors
from sparkwright.supervision.detect.setting import Found
from sparkwright.supervision.events import Event
from sparkwright.supervision.recovery import NOTHING, Needs

_MOST_QUEUED = 10_000
_EXPLAINED = 20.0


@dataclass
class Senses:
    """serving: whether the ranks of a start are being watched. heard: node -> when its samples came last.

    recorded: canary answers kept of this start. figures: it has shown its figures since the start. suspects: what logs
    tell and nobody has weighed yet. explaining: what the evidence of the incident asks for, once it has been read.
    """

    site: Site
    detectors: Detectors
    events: asyncio.Queue[Event] = field(default_factory=lambda: asyncio.Queue(_MOST_QUEUED))
    heard: dict[str, float] = field(default_factory=dict)
    serving: bool = False
    recorded: int = 0
    figures: bool = False
    suspects: asyncio.Queue[Cause] = field(default_factory=asyncio.Queue)
    explaining: asyncio.Task[Needs] | None = None

    def __post_init__(self) -> None:
        self.watching = self._watching()

    def tell(self, *found: Event) -> None:
        for event in found:
            self.events.put_nowait(event)

    def found(self, found: Found) -> None:
        self.tell(*found)

    def begin(self) -> None:
        """A start serves: what was heard and said of the one before counts no more."""
        self.detectors.begin(self.site.now())
        self.watching, self.suspects = self._watching(), asyncio.Queue()
        self.recorded, self.figures = 0, False

    async def explained(self) -> Needs:
        """Waits for the diagnosis that is under way; one that fails asks for nothing."""
        if self.explaining is None:
            return NOTHING
        await asyncio.wait({self.explaining}, timeout=_EXPLAINED)
        if not self.explaining.done() or self.explaining.cancelled():
            return NOTHING
        if error := self.explaining.exception():
            self.site.say(f"the evidence could not be read: {error!r}", warning=True)
            return NOTHING
        return self.explaining.result()

    async def let_go(self) -> None:
        if self.explaining:
            self.explaining.cancel()
            await asyncio.gather(self.explaining, return_exceptions=True)
        self.explaining = None

    def read(self, source: str, line: str) -> None:
        """Causes that this line is the first to show for certain are suspects."""
        for cause in self.watching.feed(source, f"{line}\n".encode("utf-8", "replace")):
            if cause.confidence >= CONFIDENT:
                self.suspects.put_nowait(cause)

    def _watching(self) -> Watching:
        return Watching(year_of(self.site.world), self.site.words)
