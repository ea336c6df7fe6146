"""The common parts of the sources: restarted tasks, the queue of events, and the diagnosis so far."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from sparkwright.app.bench.parsers import parser_probes
from sparkwright.app.diagnose.diagnosing import year_of
from sparkwright.app.diagnose.log_watch import Watching
from sparkwright.domain.diagnosis import CONFIDENT, Cause
from sparkwright.domain.known_keys import mask_keys
from sparkwright.engines.dialect import of_a_client, quotes_a_client
from sparkwright.ports import Clock
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.detect.detectors import Detectors
from sparkwright.supervisor.core.detect.quality import Quality
from sparkwright.supervisor.core.events import Cleared, Event, Fault, LaunchFailed
from sparkwright.supervisor.core.recovery import NOTHING, Needs
from sparkwright.supervisor.core.state import Recovery

Task = Callable[[], Coroutine[Any, Any, None]]
AGAIN = 30.0


class TaskSupervisor:
    """trouble: called with (name, error) when a task failed, with (name, None) when it runs again."""

    def __init__(self, clock: Clock, trouble: Callable[[str, Exception | None], None]) -> None:
        self._clock, self._trouble = clock, trouble
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, name: str, work: Task) -> None:
        task = asyncio.create_task(self._kept(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _kept(self, name: str, work: Task) -> None:
        mine = asyncio.current_task()
        while True:
            try:
                await work()
                return
            except Exception as error:
                if mine and mine.cancelling():
                    return  # what it says of being ended is nobody's trouble
                self._trouble(name, error)
            await self._clock.sleep(AGAIN)
            self._trouble(name, None)

    def release(self) -> None:
        """Cancels all; a connection to a node that hangs takes some seconds to end."""
        for task in self._tasks:
            task.cancel()

    async def gone(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


_MOST_QUEUED = 10_000
_EXPLAINED = 20.0
# Of each source and second; the rest is read when there is an incident. A line that is longer is cut.
_MOST_READ, _LONGEST_LINE = 32 * 1024, 8 * 1024
# Seconds in which an engine has printed all of a record that quotes a client.
_QUOTING = 2.0
_SERVES_ON = (Recovery.NONE, Recovery.REFUSE)


@dataclass(frozen=True, slots=True)
class Unwatched:
    """Time in which no supervisor looked: it hung, was stopped, or was killed. Epoch seconds."""

    since: float
    until: float


@dataclass
class EventBus:
    """serving: whether the ranks of a start are being watched. heard: node -> when its samples came last. recorded:
    canary answers kept of this start. speaks: its answers are language; None until that has been judged. figures:
    it has shown its figures since the start. suspects: causes that logs show and that are not weighed yet.
    explaining: what the evidence of the incident asks for, once it has been read. saving: evidence that is being
    written. lasting: kind -> sentence of troubles that outlast a start. quality: of the answers. unwatched: when
    nobody looked last, None if that is not known to have happened.
    """

    context: DeploymentContext
    detectors: Detectors
    events: asyncio.Queue[Event] = field(default_factory=lambda: asyncio.Queue(_MOST_QUEUED))
    heard: dict[str, float] = field(default_factory=dict)
    serving: bool = False
    recorded: int = 0
    speaks: bool | None = None
    figures: bool = False
    suspects: asyncio.Queue[Cause] = field(default_factory=asyncio.Queue)
    explaining: asyncio.Task[Needs] | None = None
    saving: set[asyncio.Task[None]] = field(default_factory=set)
    lasting: dict[str, str] = field(default_factory=dict)
    unwatched: Unwatched | None = None
    quality: Quality = field(init=False)
    _read: dict[str, tuple[int, int]] = field(default_factory=dict)
    _quoting: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.watching = self._watching()
        self.quality = Quality(parser_probes(self.context.desired.recipe.parsers))

    def put(self, *found: Event) -> None:
        for event in found:
            self.events.put_nowait(_without_keys(self._dated(event)))

    def _dated(self, event: Event) -> Event:
        """A fault that ends the service counts from the first request that got nothing."""
        if not isinstance(event, Fault) or event.since or event.recovery in _SERVES_ON:
            return event
        return replace(event, since=min(self.detectors.lost_since(event.at), event.at))

    def set_trouble(self, kind: str, what: str) -> None:
        """A trouble that lasts until it is fixed (''); reported once, and again after each start."""
        if what == self.lasting.get(kind, ""):
            return
        if what:
            self.lasting[kind] = what
            self._troubled(kind)
        else:
            del self.lasting[kind]
            self.put(Cleared(self.context.now(), kind))

    def _troubled(self, kind: str) -> None:
        self.put(Fault(self.context.now(), kind, self.lasting[kind], Recovery.NONE))

    def looked_away(self) -> None:
        """The clock was set, or nobody looked for a while: what was heard and asked before has no time any more."""
        at, last = self.context.now(), self.context.seen.canary
        self.heard = dict.fromkeys(self.heard, at)
        self.context.seen.canary = replace(last, at=at) if last else None

    def begin(self, ready: float = 0.0) -> None:
        """A start serves, since `ready`: what was seen of the one before counts no more."""
        self.detectors.begin(self.context.now(), ready)
        self.context.seen.begin(self.context.now())
        self.context.seen.canary = None
        self.watching, self.suspects = self._watching(), asyncio.Queue()
        self.recorded, self.figures, self.speaks = 0, False, None
        for kind in self.lasting:
            self._troubled(kind)

    async def explained(self) -> Needs:
        """Waits for the diagnosis that is under way; one that fails asks for nothing."""
        if self.explaining is None:
            return NOTHING
        await asyncio.wait({self.explaining}, timeout=_EXPLAINED)
        if not self.explaining.done() or self.explaining.cancelled():
            return NOTHING
        if error := self.explaining.exception():
            self.context.notice(f"the evidence could not be read: {error!r}", warning=True)
            return NOTHING
        return self.explaining.result()

    def save(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work in the background, also while another incident is captured."""
        task = asyncio.create_task(work)
        self.saving.add(task)
        task.add_done_callback(self.saving.discard)

    async def saved(self) -> None:
        """Waits until the evidence of all incidents is written, for a while."""
        if self.saving:
            await asyncio.wait(self.saving, timeout=_EXPLAINED)

    async def let_go(self) -> None:
        if self.explaining:
            self.explaining.cancel()
            await asyncio.gather(self.explaining, return_exceptions=True)
        self.explaining = None

    def read(self, source: str, line: str) -> None:
        """Causes that this line is the first to show for certain are suspects.

        No log holds up the loop: of one that prints more than rules can read meanwhile, the rest is passed over.
        """
        now, line = self.context.now(), line[:_LONGEST_LINE]
        if quotes_a_client(line):
            self._quoting[source] = now + _QUOTING
        if of_a_client(line) or now < self._quoting.get(source, now):
            return
        second = int(now)
        at, read = self._read.get(source, (0, 0))
        self._read[source] = second, (read if at == second else 0) + len(line)
        if self._read[source][1] > _MOST_READ:
            return
        for cause in self.watching.feed(source, f"{line}\n".encode("utf-8", "replace")):
            if cause.confidence >= CONFIDENT:
                self.suspects.put_nowait(cause)

    def _watching(self) -> Watching:
        return Watching(year_of(self.context.services), self.context.fix_values)


_FILES_EVERY = 5.0
HISTORY = "history"


async def watch_files(bus: EventBus) -> None:
    found: set[str] = set()
    while True:
        found = check_files(bus, found)
        await bus.context.pause(_FILES_EVERY)


def check_files(bus: EventBus, before: set[str]) -> set[str]:
    """The kinds that are wrong now. before: those of the last call."""
    wrong = {**bus.context.journal.wrong(), HISTORY: bus.context.store.wrong()}
    for kind in {*wrong, *before}:
        bus.set_trouble(kind, wrong.get(kind, ""))
    return set(wrong)


def _without_keys(event: Event) -> Event:
    """Text for `status`, messages and refused clients; the log lines in it may hold a key."""
    if isinstance(event, Fault):
        return replace(event, what=mask_keys(event.what), evidence=tuple(map(mask_keys, event.evidence)))
    return replace(event, why=mask_keys(event.why)) if isinstance(event, LaunchFailed) else event
