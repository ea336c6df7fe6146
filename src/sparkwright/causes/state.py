"""The state of a server where its log ends: since when it serves, whether it stopped in good order, what it starts."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from sparkwright.causes.candidates import has_bad_word, is_line, line_pattern
from sparkwright.causes.evidence import is_quiet
from sparkwright.domain.diagnosis import LogState, Proof
from sparkwright.domain.values import dataclass
from sparkwright.logscan.sign import Story

_FILE = Path(__file__).parent / "whole_log" / "marks.toml"
READY, AT_WORK, STARTS, STOPPED, FINISHED = "ready", "at work", "starts", "stopped", "finished"
RECOVERED, ASKED, OBEYED = "recovered", "stop asked", "stopped when asked"
_END = 24  # lines after which a program that announced its success may say more
_COUNT = 3  # lines at the end in which a program counts what failed


@cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["STATE"]
    return found


def state_patterns() -> Mapping[str, str]:
    """Patterns to look for in logs: name -> pattern."""
    return _texts()["marks"]


@cache
def _last(name: str) -> re.Pattern[str]:
    """The pattern of a mark that counts only in the last lines."""
    return re.compile(_texts()["last"][name])


@dataclass(frozen=True, slots=True)
class ServerState:
    """One source. ready: the line since which it serves, None if it was never ready or starts again; stopped: after.

    finished: the line near the end by which a program says that it succeeded; recovered: one by which it took another
    way than the one that had failed; asked: one by which somebody asked it to stop, where it then ended in good order.
    """

    source: str
    state: LogState
    ready: Proof | None = None
    finished: Proof | None = None
    recovered: Proof | None = None
    asked: Proof | None = None

    @property
    def before(self) -> int:
        """The last line that cannot explain what came later, as the server was ready after it."""
        return max((line.number for line in (self.ready, self.finished, self.recovered) if line), default=0)


def server_of(story: Story) -> ServerState:
    """The server's state by its marks: the last of start, readiness, work and shutdown decides."""
    seen = {name: story.marks[name].last for name in state_patterns() if name in story.marks}
    ready, starts, asked = (seen.get(name) for name in (READY, STARTS, ASKED))
    works, stops, obeyed = (
        [line for line in story.tail if _last(name).search(line.text)] for name in (AT_WORK, STOPPED, OBEYED)
    )
    stops += [line for line in obeyed if asked and line.number > asked.number]
    last = max((one.number for one in (ready, *works[-1:]) if one), default=0)
    # A worker's log never says that it is ready: it may have served all the same when it was asked to stop.
    if starts and obeyed and asked and obeyed[-1].number > asked.number > max(starts.number, last):
        return ServerState(story.source, LogState.STOPPED, ready, asked=asked)
    if starts and starts.number > last:
        return ServerState(story.source, LogState.STARTING)
    since = ready or next(iter(works), None)
    if not since:
        recovered = _recovered(story.tail)
        done = next((one for one in reversed(story.tail[-_END:]) if _last(FINISHED).search(one.text)), None)
        done = done or _counted(story.tail)
        return ServerState(story.source, LogState.STOPPED if stops or done else LogState.UNKNOWN, None, done, recovered)
    if max((line.number for line in stops), default=0) <= last:
        return ServerState(story.source, LogState.SERVING, since)
    is_later = asked is not None and asked.number > since.number
    return ServerState(story.source, LogState.STOPPED, since, asked=asked if is_later else None)


def _counted(tail: Sequence[Proof]) -> Proof | None:
    """The line at the end by which a program counts its failures and has none."""
    for line in reversed(tail[-_COUNT:]):
        if has_bad_word(line.text):
            return None
        if line_pattern("none").search(line.text):
            return line
    return None


def _recovered(tail: Sequence[Proof]) -> Proof | None:
    """The last line that takes another way, if no line after it reports a failure."""
    at = max((n for n, line in enumerate(tail) if _last(RECOVERED).search(line.text)), default=None)
    if at is None or any(is_line("bad", line.text) and not is_quiet(line.text) for line in tail[at + 1 :]):
        return None
    return tail[at]


def state_of(servers: Sequence[ServerState], failed: bool, begun: bool) -> LogState:
    """All sources together. failed: a line reports a failure; begun: an engine's first lines are there."""
    if failed:
        return LogState.FAILED
    states = {one.state for one in servers}
    order = (LogState.STARTING, LogState.STOPPED, LogState.SERVING)
    return next((state for state in order if state in states), LogState.STARTING if begun else LogState.UNKNOWN)


def ready_lines(servers: Iterable[ServerState]) -> Mapping[str, int]:
    """Source -> the line by which it was ready, or had done what it was to do, of those that were."""
    return {one.source: one.before for one in servers if one.before}


def of_the_stop(servers: Iterable[ServerState]) -> Mapping[str, int]:
    """Source -> the line from which on what it reports is the stop's, of those that were asked to stop and did."""
    return {one.source: one.asked.number for one in servers if one.asked}
