"""Logs as an outage needs them: read in two parts, the ends of ranks as lines of one, and what cannot be."""

from collections.abc import Callable, Mapping, Sequence

from sparkwright.causes.diagnose import Reader, line_causes, log_book
from sparkwright.causes.load import families
from sparkwright.domain.facts import RankStatus
from sparkwright.engines.catalog import ENGINES
from sparkwright.logscan.logline import line_time

# Signals that nothing inside an engine sends to its first process: HUP, INT, KILL (but for `kills_itself`), TERM.
_KILLED = 137
_OUTSIDE = (129, 130, _KILLED, 143)


class SplitReader:
    """Lines are fed in order.

    border: the log's first time -> that time by the log's own clock; -inf where all lines belong to the second part.
    """

    def __init__(self, name: str, year: int, border: Callable[[float], float]) -> None:
        self.early: Reader | None = None
        self._name, self._year, self._border = name, year, border
        self._limit: float | None = None
        self._settled = False
        self._reader = Reader(log_book(), name, year)

    def feed(self, line: str) -> None:
        if not self._settled and (at := line_time(line, self._year)) is not None:
            self._pass(at)
        self._reader.feed(f"{line}\n".encode("utf-8", "replace"))

    def _pass(self, at: float) -> None:
        self._limit = self._border(at) if self._limit is None else self._limit
        if at < self._limit:
            self.early = self._reader
            return
        self._settled = True
        if self.early:
            self.early.close()
            self._reader = Reader(log_book(), self._name, self._year, self.early.source().lines)

    def close(self) -> None:
        self._reader.close()
        if self.early:
            self.early.ended = False  # more came after it

    @property
    def current(self) -> tuple[Reader, ...]:
        return () if self._reader is self.early or not self._reader.source().lines else (self._reader,)


def end_lines(ended: Sequence[RankStatus], kernels: Mapping[str, bool | None], what: str = "") -> str:
    """Lines that nodes report about ended ranks. kernels: True if a node's kernel killed for lack of memory lately,
    None if its log cannot be read. what: the rank that ended first, as a sentence that begins with the rank."""
    failed = any(rank.exit_code not in (0, None, *_OUTSIDE) for rank in ended)
    told = [_line(rank, kernels.get(rank.node), what.startswith(f"{_label(rank)} "), failed) for rank in ended]
    return "".join(f"{line}\n" for line in (what, *told) if line)


def _line(rank: RankStatus, killed: bool | None, first: bool, failed: bool) -> str:
    """first: nothing ended before it; failed: a rank did of its own, and may have had the others ended."""
    label = _label(rank)
    if rank.exit_code == 0:
        return f"{label} left in order (code 0): it follows its peers"
    if (first or not failed) and not rank.oom_killed and not killed and (signal := _signal(rank, first)):
        seen = "has no out-of-memory kill" if killed is False else "cannot be read: it may have been out of memory"
        return f"{label} was killed by signal {signal} from outside; the kernel log of {rank.node} {seen}"
    return f"{label} {rank.state}: ExitCode={rank.code} OOMKilled={rank.oom_killed}"


def _signal(rank: RankStatus, first: bool) -> int:
    """0 for none. The leader of a process that serves leaves its exit code behind, but for SIGKILL and a reboot."""
    engine = ENGINES.get(rank.engine.partition(" ")[0])
    if rank.exit_code == _KILLED and engine and engine.traits.kills_itself:
        return 0
    if rank.exit_code in _OUTSIDE:
        return (rank.exit_code or 0) - 128
    return 9 if first and rank.exit_code is None and rank.runtime == "process" else 0


def _label(rank: RankStatus) -> str:
    return f"rank {rank.rank} on {rank.node}"


def cause_keys(stops: bool, family: str = "") -> frozenset[str]:
    """Keys of the causes that end a service (none has happened while it answers), or of those that only degrade it.

    family: only of it (`api-and-client`: what a client did wrong, or was refused).
    """
    causes = families()[family] if family else line_causes().values()
    return frozenset(cause.key for cause in causes if cause.severity.stops is stops)
