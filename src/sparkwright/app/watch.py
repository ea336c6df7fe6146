"""Watching ranks start: their logs become phases; an exit, a silence or a real readiness ends the wait."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from sparkwright.app.ranks import follow_command
from sparkwright.app.world import World
from sparkwright.domain.deployment import PHASE_ORDER, LogEvent, Phase
from sparkwright.domain.errors import NotReady
from sparkwright.domain.plan import Plan, RankSpec
from sparkwright.domain.recipe import PhaseTime
from sparkwright.domain.units import duration
from sparkwright.engines.engine import Engine
from sparkwright.engines.stuck import why_stuck
from sparkwright.ports import RankPhase

_EXIT = "\x1eexit "
TAIL = 25
# Phases that can take a rank's whole start: what stands still there has not necessarily failed in that phase.
_NO_LIMIT = 3600.0


@dataclass
class RankWatch:
    """One rank as its log tells it. moved: when it last progressed (monotonic seconds)."""

    spec: RankSpec
    moved: float
    phase: Phase = Phase.START
    text: str = "started, nothing printed yet"
    done: float | None = None
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ended: str = ""

    @property
    def label(self) -> str:
        return f"rank {self.spec.rank} on {self.spec.node}"


class Watch:
    """All ranks of one start. `ready` is set by the head's readiness line; failures are raised as NotReady."""

    def __init__(self, world: World, plan: Plan, engine: Engine) -> None:
        self._world, self._plan, self._engine = world, plan, engine
        self._times = _times(plan, engine)
        now = world.clock.monotonic()
        self.ranks = [RankWatch(spec, now) for spec in plan.specs]
        self.ready = asyncio.Event()
        self.began = now
        self.phases: dict[Phase, float] = {}
        self.facts: dict[str, str] = {}
        self.answering = False

    async def follow(self, rank: RankWatch) -> None:
        """Reads a rank's log to its end. Raises NotReady when the rank ends."""
        stream = self._world.hosts[rank.spec.node].stream(follow_command(self._world, self._plan, rank.spec))
        async with aclosing(stream) as lines:  # type: ignore[type-var]
            async for line in lines:
                if line.startswith(_EXIT):
                    rank.ended = line.removeprefix(_EXIT)
                    raise self._exited(rank)
                if line.strip():
                    self._line(rank, line)
        raise NotReady(f"{rank.label}: its log ended although the rank did not say that it exited", "see `status`")

    async def guard(self) -> None:
        """Raises NotReady when no rank has progressed for longer than the slowest rank's phase allows."""
        while True:
            await self._world.clock.sleep(0.5)
            slow = self.slowest()
            silent = self._world.clock.monotonic() - max(rank.moved for rank in self.ranks)
            allowed = self._limit(slow.phase)
            if not self.answering and silent > allowed:
                raise self._stuck(slow, silent, allowed)

    def slowest(self) -> RankWatch:
        """The rank that the others wait for: furthest behind, then silent for longest."""
        return min(self.ranks, key=lambda r: (PHASE_ORDER.index(r.phase), r.moved))

    def _line(self, rank: RankWatch, line: str) -> None:
        rank.lines.append(line)
        event = self._engine.read(line)
        if event is None:
            return
        if event.error:
            rank.errors.append(line)
        self.facts.update(event.facts)
        if not event.alive and not event.error:
            self._progress(rank, event)
        if event.ready and rank.spec.is_head:
            self.ready.set()

    def _progress(self, rank: RankWatch, event: LogEvent) -> None:
        rank.moved = self._world.clock.monotonic()
        entered = PHASE_ORDER.index(event.phase) > PHASE_ORDER.index(rank.phase)
        if entered and rank.spec.is_head:
            self.phases[event.phase] = rank.moved
        rank.phase = event.phase if entered else rank.phase
        rank.text, rank.done = event.text or rank.text, event.done
        usual = self._times.get(event.phase, PhaseTime()).usual
        self._world.sink.tell(
            RankPhase(
                rank.spec.rank, rank.spec.node, event.phase, event.text, event.done, event.total, event.unit, usual
            )
        )

    def _limit(self, phase: Phase) -> float:
        return self._times.get(phase, PhaseTime()).stuck_after or _NO_LIMIT

    def _exited(self, rank: RankWatch) -> NotReady:
        status, code, oom = (*rank.ended.split(), "", "", "")[:3]
        why = _why(code, oom == "true")
        how = "is gone" if status == "gone" else f"exited with code {code}{why}"
        waited = duration(self._world.clock.monotonic() - self.began)
        return NotReady(
            f"{rank.label} {how} in phase {rank.phase} after {waited} ({rank.text})",
            "read the last lines below; all ranks were stopped, their logs are kept",
            tail=_proof(rank),
        )

    def _stuck(self, rank: RankWatch, silent: float, allowed: float) -> NotReady:
        why = why_stuck({r.spec.rank: r.phase for r in self.ranks})
        return NotReady(
            f"stuck: no rank has progressed for {duration(silent)} (allowed in phase {rank.phase}: "
            f"{duration(allowed)}); {why}; {rank.label} said last: {rank.text}",
            "look at that rank's log and node first; phases.<name>.stuck_after in the recipe changes the limit",
            tail=_proof(rank),
        )


def _times(plan: Plan, engine: Engine) -> Mapping[Phase, PhaseTime]:
    """The engine's usual times, with what the recipe says in their place."""
    times = dict(engine.phases())
    for name, given in plan.recipe.phases.items():
        phase = Phase(name)
        base = times.get(phase, PhaseTime())
        times[phase] = PhaseTime(given.usual or base.usual, given.stuck_after or base.stuck_after)
    return times


def _why(code: str, oom: bool) -> str:
    if oom:
        return " (killed: the container's memory limit)"
    number = int(code) if code.isdigit() else 0
    return {137: " (SIGKILL: often the kernel's out-of-memory killer)", 139: " (SIGSEGV)", 143: " (SIGTERM)"}.get(
        number, ""
    )


def _proof(rank: RankWatch) -> tuple[str, ...]:
    """The error lines that the engine's dialect knows, then the last lines."""
    last = rank.lines[-TAIL:]
    return (*[line for line in rank.errors[:5] if line not in last], *last)
