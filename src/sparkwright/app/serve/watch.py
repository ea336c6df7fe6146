"""Watching ranks start: their logs become phases; an exit, a silence or a real readiness ends the wait."""

import asyncio
import contextlib
import math
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from sparkwright.app.ranks import End, follow, handle, runs
from sparkwright.app.serve.load_guard import LoadGuard
from sparkwright.app.services import Services
from sparkwright.domain.deployment import PHASE_ORDER, LogEvent, Phase
from sparkwright.domain.errors import NotReady, Unreachable
from sparkwright.domain.plan import Plan, RankSpec
from sparkwright.domain.progress import RankPhase
from sparkwright.domain.recipe import PhaseTime
from sparkwright.domain.units import GIB, duration
from sparkwright.engines.catalog import definition_of, phases_of
from sparkwright.engines.dialect import is_exit_noise, log_read_up_to
from sparkwright.engines.engine import Engine
from sparkwright.engines.stuck import lost_a_peer, why_stuck
from sparkwright.facts.engine_log import Figures

TAIL = 25
CLAIMED = "claimed:"  # and the node: bytes that the ranks there printed that they need in all
_LOOKED_AT = 200  # of a rank's last lines, those worth showing are among so many
# Where neither engine nor recipe says how long a phase may be silent.
_NO_LIMIT = 3600.0
# One rank's end is soon followed by that of the others: which was first tells the cause from its consequences.
_OTHERS_FOLLOW = 1.0
# A laptop changes its network, a node's sshd restarts: the ranks do not care, so neither do we at once.
LOST_FOR = 20.0
_RECONNECT = 1.0
# Seconds of lines of which none is understood, where an engine usually shows its first known one sooner.
_LEAST_PATIENCE = 10.0
_COMPARED = 400  # characters of a line, from its end: progress bars grow there
# Times, process ids and addresses change in a line that says the same again.
_CHANGES = re.compile(r"\d+[:.]\d\d[:.]\d\d\S*|\b\d{2,4}-\d\d(?:-\d\d)?\b|[IWEF]\d{4} |\bpid=\d+|0x[0-9a-f]+")
_DIGITS = re.compile(r"\d+")
# Different texts of one rank that are remembered; a text that comes again after so many others counts as new.
_REMEMBERED = 4096
# Lines whose numbers alone change may be a retry without end: no news in their words for this many limits is stuck.
_COUNTING_ONLY = 3
_NOT_READ_VERSION = (
    "the log of {} was read here up to {}: phases of {} may be shown wrong, and a silence of {} counts as stuck"
)
_SILENT = "{} has printed nothing: its phases are not known, and only an answer shows that it is ready"
_NOT_READ = (
    "{}: no line of {} is understood so far: its phases are not known; the API's answer shows whether it is ready, its "
    "process whether it failed"
)


@dataclass
class RankWatch:
    """One rank as its log shows it. moved, ended_at: when it last progressed, when it ended (monotonic seconds).

    at: phase of its last progress, which may be earlier than `phase`, the furthest. alive: when it last printed
    something that it had not printed before; said: when the words were new, not only the numbers in them.
    first, last: when it printed. understood: one of its lines was progress that the engine's dialect knows.
    """

    spec: RankSpec
    moved: float
    phase: Phase = Phase.START
    at: Phase = Phase.START
    alive: float = 0.0
    said: float = 0.0
    texts: dict[str, None] = field(default_factory=dict)
    text: str = "started, nothing printed yet"
    done: float | None = None
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    ended: str = ""
    ended_at: float = 0.0
    first: float = math.inf
    last: float = 0.0
    understood: bool = False

    @property
    def label(self) -> str:
        return f"rank {self.spec.rank} on {self.spec.node}"

    def heard(self, line: str, now: float) -> None:
        """Note a line that is no progress: a sign of life if the rank has not printed the same before."""
        text = _CHANGES.sub("", line[-_COMPARED:])
        words = _DIGITS.sub("#", text)
        self.said = now if words not in self.texts else self.said
        self.alive = now if text not in self.texts else self.alive
        for known in (text, words):
            self.texts.pop(known, None)
            self.texts[known] = None
        while len(self.texts) > _REMEMBERED:
            del self.texts[next(iter(self.texts))]


class StartWatch:
    """All ranks of one start. `ready` is set by the head's readiness line; failures are raised as NotReady.

    lost_for: seconds for which a node may be out of reach. known: as of LoadGuard.
    """

    def __init__(
        self,
        services: Services,
        plan: Plan,
        engine: Engine,
        lost_for: float = LOST_FOR,
        known: Mapping[str, float] | None = None,
    ) -> None:
        self._services, self._plan, self._engine, self._lost_for = services, plan, engine, lost_for
        self._times = _times(plan)
        now = services.clock.monotonic()
        self.ranks = [RankWatch(spec, now) for spec in plan.specs]
        self.memory = LoadGuard(services, plan, known)
        self.ready, self._end = asyncio.Event(), asyncio.Event()
        self.began = now
        self.phases: dict[Phase, float] = {}
        self.facts: dict[str, str] = {}
        self.answering = False
        described = definition_of(plan.recipe)
        self._described, self._mute = described is not None, described is not None and not described.log
        self._deaf: set[int] = set()
        self._not_read = self._noted_version = self._noted_silence = False

    @property
    def claims(self) -> dict[str, float]:
        """The memory that the ranks printed they need in all, as figures for a supervisor: `claimed:NODE` -> bytes."""
        found: dict[str, float] = {}
        for rank in self.ranks:
            with contextlib.suppress(ValueError):
                size = float(rank.figures.facts.get("whole_gib", "")) * GIB
                found[f"{CLAIMED}{rank.spec.node}"] = found.get(f"{CLAIMED}{rank.spec.node}", 0.0) + size
        return found

    @property
    def not_understood(self) -> bool:
        """The head has printed for longer than an engine usually takes to its first known line, and none was known."""
        if self._mute:  # none of its lines is known, and nobody expects any to be
            return False
        head = self.ranks[0]
        patience = max(self._times.get(Phase.START, PhaseTime()).usual, _LEAST_PATIENCE)
        found = not head.understood and self._now - head.first > patience
        if found and not self._not_read:
            chosen = self._plan.recipe.engine
            self._services.notice(_NOT_READ.format(chosen.label, head.label), warning=True)
        self._not_read = self._not_read or found
        return found

    @property
    def may_be_ready(self) -> bool:
        """True if no line of the log can be relied on to say that the server is up: then it is asked."""
        return self._described or self.silent or self.not_understood or self.version_not_read

    @property
    def silent(self) -> bool:
        """True if the head has printed nothing for longer than an engine usually takes to its first line."""
        head = self.ranks[0]
        patience = max(self._times.get(Phase.START, PhaseTime()).usual, _LEAST_PATIENCE)
        found = head.first == math.inf and head.spec.rank not in self._deaf and self._now - self.began > patience
        if found and not self._noted_silence:
            self._noted_silence = True
            self._services.notice(_SILENT.format(head.label), warning=True)
        return found

    @property
    def version_not_read(self) -> bool:
        """True if nobody has read the log of this engine version: its lines may mean other phases, or none."""
        found = log_read_up_to(self._engine.name, self._version())
        if found and not self._noted_version:
            self._noted_version = True
            chosen, longest = self._plan.recipe.engine, duration(max(map(self.limit, Phase)))
            name = f"{chosen.name} {self._version()}"
            self._services.notice(_NOT_READ_VERSION.format(chosen.name, found, name, longest), warning=True)
        return bool(found)

    def _version(self) -> str:
        """The version from the engine's own log, else from the recipe."""
        return self.facts.get("version") or self._plan.recipe.engine.version

    async def follow(self, rank: RankWatch) -> None:
        """Reads a rank's log until the rank ends, over as many connections as it takes.

        Raises Unreachable when the node cannot be reached for `lost_for` seconds.
        """
        heard = self._now
        while not rank.ended:
            try:
                await self._read(rank)
                await self._services.clock.sleep(0 if rank.ended else _RECONNECT)
            except Unreachable as error:
                known = rank.spec.rank in self._deaf
                heard = heard if known else self._now
                if self._now - heard > self._lost_for:
                    raise
                if not known:
                    told = "" if math.isinf(self._lost_for) else f" for {duration(self._lost_for)}"
                    self._services.notice(f"{error.message}; trying again{told}", warning=True)
                self._deaf.add(rank.spec.rank)
                await self._services.clock.sleep(_RECONNECT)

    @property
    def _now(self) -> float:
        return self._services.clock.monotonic()

    async def _read(self, rank: RankWatch) -> None:
        """The log from its beginning; what an earlier connection has read is passed over."""
        known = len(rank.lines)
        services, spec, name = self._services, rank.spec, self._plan.deployment
        stream = follow(services.hosts[spec.node], spec.runtime, handle(services, name, spec))
        async with aclosing(stream) as lines:  # type: ignore[type-var]
            async for line in lines:
                if spec.rank in self._deaf:  # nobody is stuck only because we could not hear it
                    self._deaf.discard(spec.rank)
                    rank.moved = self._now
                if not isinstance(line, End):
                    if known:
                        known -= 1
                    else:
                        self._line(rank, line)
                elif not await runs(services, name, spec.rank, spec.node):
                    rank.ended, rank.ended_at = line.how, self._now - line.ago
                    self._end.set()

    async def exits(self) -> None:
        """Raises NotReady once a rank has ended; it names the one that was the cause."""
        await self._end.wait()
        deadline = self._now + _OTHERS_FOLLOW
        while self._now < deadline and not all(rank.ended for rank in self.ranks):
            await self._services.clock.sleep(0.05)
        raise self._exited()

    async def confirm_head(self) -> None:
        """Return once the head's rank is known to run; after an answer of one that has ended, `exits` raises.

        Asked of engines that only a file describes: one that goes into the background answers, and the end of its first
        process may be known here later than the answer.
        """
        head = next(rank for rank in self.ranks if rank.spec.is_head)
        where = (self._services, self._plan.deployment, head.spec.rank, head.spec.node)
        while self._described and not await runs(*where):
            await self._services.clock.sleep(0.5)

    async def guard(self) -> None:
        """Raises NotReady when no rank has progressed for longer than the slowest rank's phase allows."""
        while True:
            await self._services.clock.sleep(0.5)
            slow = self.slowest()
            allowed = self._allowed(slow)
            moved = max(rank.moved for rank in self.ranks)
            silent = self._now - max(moved, *(rank.alive for rank in self.ranks))
            if self._now - max(moved, *(rank.said for rank in self.ranks)) > _COUNTING_ONLY * allowed:
                silent = self._now - moved
            quiet = self.answering or self._deaf or self._end.is_set()
            if not quiet and silent > allowed:
                raise self._stuck(slow, silent, allowed)

    def _allowed(self, slow: RankWatch) -> float:
        """Seconds of silence: of the slowest rank's phase; of the longest still to come where phases may be wrong."""
        if self.not_understood or self.version_not_read:
            return max(map(self.limit, PHASE_ORDER[PHASE_ORDER.index(slow.at) :]))
        return max(self.limit(slow.phase), self.limit(slow.at))

    def steps(self) -> list[tuple[str, float]]:
        """Seconds between the head's phase changes; the first begins with the start of the watch."""
        marks = sorted(self.phases.items(), key=lambda item: item[1])
        starts = [(str(Phase.START), self.began), *((str(phase), at) for phase, at in marks)]
        ends = [at for _, at in starts[1:]] + [self._now]
        return [(name, end - begin) for (name, begin), end in zip(starts, ends, strict=True)]

    def slowest(self) -> RankWatch:
        """The rank that the others wait for: furthest behind, then silent for longest."""
        return min(self.ranks, key=lambda r: (PHASE_ORDER.index(r.phase), r.moved))

    def _line(self, rank: RankWatch, line: str) -> None:
        rank.lines.append(line)
        rank.first, rank.last = min(rank.first, self._now), self._now
        event = self._engine.read(line)
        if not rank.understood:
            rank.text = line.strip()[:_COMPARED] if self._mute else "no line that it printed is understood"
        if event is None or (event.alive and event.done is not None):
            rank.heard(line, self._now)
        if event is None:
            return
        if event.error:
            rank.errors.append(line)
        self.facts.update(rank.figures.note(event))
        if not event.alive and not event.error:
            self._progress(rank, event)
        if event.ready and rank.spec.is_head:
            self.ready.set()

    def _progress(self, rank: RankWatch, event: LogEvent) -> None:
        rank.moved, rank.understood = self._now, True
        entered = PHASE_ORDER.index(event.phase) > PHASE_ORDER.index(rank.phase)
        if entered and rank.spec.is_head:
            self.phases[event.phase] = rank.moved
            self.memory.mark(event.phase)
        rank.phase, rank.at = event.phase if entered else rank.phase, event.phase
        rank.text, rank.done = event.text or rank.text, event.done
        usual = self._times.get(rank.phase, PhaseTime()).usual
        where = (rank.spec.rank, rank.spec.node, rank.phase)
        self._services.sink.report(RankPhase(*where, event.text, event.done, event.total, event.unit, usual))

    def limit(self, phase: Phase) -> float:
        """Seconds without progress after which a rank in this phase counts as stuck."""
        return self._times.get(phase, PhaseTime()).stuck_after or _NO_LIMIT

    def _exited(self) -> NotReady:
        ended = [rank for rank in self.ranks if rank.ended]
        first, *others = sorted(ended, key=lambda rank: (lost_a_peer(rank.lines), rank.ended_at))
        after = "".join(f"; with it {rank.label} {describe_end(rank.ended)}" for rank in others)
        waited = duration(max(first.ended_at - self.began, 0.0))
        left = _BACKGROUND if self._described and first.ended.split()[1:2] == ["0"] else ""
        return NotReady(
            f"{first.label} {describe_end(first.ended)} in phase {first.phase} after {waited} "
            f"({first.text}){left}{after}",
            _HINT.format(self._plan.deployment),
            tail=_proof(first),
        )

    def _stuck(self, rank: RankWatch, silent: float, allowed: float) -> NotReady:
        why = why_stuck({r.spec.rank: r.phase for r in self.ranks})
        return NotReady(
            f"stuck: no rank has progressed for {duration(silent)} (allowed in phase {rank.phase}: "
            f"{duration(allowed)}); {why}; {rank.label} last printed: {rank.text}",
            f"{_HINT.format(self._plan.deployment)}; phases.{rank.phase}.stuck_after in the recipe changes the limit",
            tail=_proof(rank),
        )


_HINT = (
    "the lines above are that rank's last; the logs of all ranks are kept, here and on the nodes until "
    "`sparkwright down {}`"
)


def _times(plan: Plan) -> Mapping[Phase, PhaseTime]:
    """The engine's usual times, with the recipe's in their place."""
    times = dict(phases_of(plan.recipe))
    for name, given in plan.recipe.phases.items():
        phase = Phase(name)
        base = times.get(phase, PhaseTime())
        times[phase] = PhaseTime(given.usual or base.usual, given.stuck_after or base.stuck_after)
    return times


# A start that succeeds and ends: what it left behind is nobody's child, and cannot be watched.
_BACKGROUND = "; it may have gone into the background: give it the option that keeps it in the foreground"
_SIGNALS = {137: " (SIGKILL: often the kernel's out-of-memory killer)", 139: " (SIGSEGV)", 143: " (SIGTERM)"}


def describe_end(ended: str) -> str:
    """The end of a rank as a sentence; ended: as in End.how."""
    status, code, oom = (*ended.split(), "", "", "")[:3]
    if status == "gone":
        return "is gone: somebody removed it"
    if status == "restarted":
        return "ended, and Docker started it again: somebody set a restart policy for its container"
    return "ended and left no exit code" if code == "unknown" else f"exited with code {code}{_why(code, oom == 'true')}"


def _why(code: str, oom: bool) -> str:
    if oom:
        return " (killed: the container's memory limit)"
    return _SIGNALS.get(int(code) if code.isdigit() else 0, "")


def _proof(rank: RankWatch) -> tuple[str, ...]:
    """The error lines that the engine's dialect knows, then the last lines."""
    last = [line for line in rank.lines[-_LOOKED_AT:] if not is_exit_noise(line)][-TAIL:]
    return (*[line for line in rank.errors[:5] if line not in last], *last)
