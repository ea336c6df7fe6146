"""A whole engine log as a story: when each phase began, which figures it gave, whether it got ready, what broke it.

The dialect comes in as a function (`Engine.read`): facts and engines do not see each other.
"""

import re
from collections.abc import Callable, Iterable

from sparkwright.domain.deployment import PHASE_ORDER, LogEvent, Phase
from sparkwright.domain.values import dataclass

# A fact of this name says that an engine begins anew: whoever restarts a container continues its log.
START = "start"
_PLUS = "+"
Read = Callable[[str], LogEvent | None]
_STAMP = re.compile(r'(?:^|[\s\["])(?:\d{4}-)?(?:\d\d-)?(\d\d)[ T]+(\d\d):(\d\d):(\d\d)\b')
_UPTIME = re.compile(r"(\d+)\.(\d\d)\.(\d{3})\.\d{3} ")
# They only say that something else broke before.
_CONSEQUENCE = re.compile(
    r"root cause above|EngineDeadError|^RuntimeError: cancelled|EngineCore (?:failed|encountered)|"
    r"Scheduler hit an exception|Received sigquit|SIGQUIT received|"
    r"Failed to init server, please check|exiting due to model loading error|"
    r"WorkerProc (?:hit|failed)|died unexpectedly|output_handler failed|\d+ validation errors? for "
)


class Figures:
    """facts: figure -> value. A fact named `kv_gib+v` adds to `kv_gib`: engines list pools and draft models separately.

    Processes of one log with the same figure (the ranks of tp on one node) do not add up: the first one counts.
    """

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self._speakers: dict[str, str] = {}

    def note(self, event: LogEvent) -> dict[str, str]:
        """Takes in a line; returns the figures that it changed."""
        changed: dict[str, str] = {}
        for name, value in event.facts:
            if name == START:
                self.facts.clear()
                self._speakers.clear()
                continue
            figure, plus, _ = name.partition(_PLUS)
            if not plus or self._speakers.setdefault(figure, event.who) == event.who:
                changed[figure] = self.facts[figure] = self._sum(figure, value) if plus else value
        return changed

    def _sum(self, figure: str, value: str) -> str:
        return f"{float(self.facts.get(figure, '0')) + float(value):.2f}"


@dataclass(frozen=True, slots=True)
class LogStory:
    """phases: (phase, seconds after the first stamped line) as each was first entered; ready_after None: never ready.

    facts: last value of each figure. errors: error lines in order; root: the one that explains the others, '' if none.
    """

    phases: tuple[tuple[Phase, float], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    ready_after: float | None = None
    errors: tuple[str, ...] = ()
    root: str = ""


def read_log(lines: Iterable[str], read: Read) -> LogStory:
    """Reads a log of one rank from its beginning. Never raises on odd lines."""
    clock, phases, figures, errors = _Clock(), list[tuple[Phase, float]](), Figures(), list[str]()
    ready: float | None = None
    for line in lines:
        after = clock.at(line)
        event = read(line)
        if event is None:
            continue
        figures.note(event)
        if event.error:
            errors.append(event.text)
        elif not event.alive and (not phases or PHASE_ORDER.index(event.phase) > PHASE_ORDER.index(phases[-1][0])):
            phases.append((event.phase, after))
        ready = after if event.ready and ready is None else ready
    return LogStory(tuple(phases), tuple(figures.facts.items()), ready, tuple(errors), root_error(errors))


def root_error(errors: Iterable[str]) -> str:
    """The first error line that is not a consequence; the first of all when there is no other."""
    found = tuple(errors)
    return next((e for e in found if not _CONSEQUENCE.search(e)), found[0] if found else "")


class _Clock:
    """Seconds since the first time stamp; lines without one have the time of the line before."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._now = 0.0

    def at(self, line: str) -> float:
        stamp = _seconds(line)
        if stamp is not None:
            self._first = stamp if self._first is None else self._first
            self._now = max(self._now, stamp - self._first)
        return round(self._now, 3)


def _seconds(line: str) -> float | None:
    """`11-21 04:09:41` counted from the month's beginning, or llama.cpp's uptime `0.00.016.246`."""
    if up := _UPTIME.match(line):
        minutes, seconds, milli = (int(part) for part in up.groups())
        return minutes * 60 + seconds + milli / 1000
    if found := _STAMP.search(line[:80]):
        day, hour, minute, second = (int(part) for part in found.groups())
        return float(((day * 24 + hour) * 60 + minute) * 60 + second)
    return None
