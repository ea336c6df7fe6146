"""Memory of the nodes while ranks start: sampled there each second, kept as a curve, and a start is ended in time."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import islice
from types import ModuleType

from sparkwright.app.cluster_state import model_path
from sparkwright.app.ranks import handle
from sparkwright.app.services import Services
from sparkwright.domain.command import Command
from sparkwright.domain.deployment import PHASE_ORDER, Phase
from sparkwright.domain.errors import NodeError, NotReady
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.sample import LoadSample
from sparkwright.domain.units import GIB, gib
from sparkwright.engines.catalog import engine_of
from sparkwright.facts.sample import parse_load
from sparkwright.planner.floors import floors
from sparkwright.remote import docker, process
from sparkwright.remote.programs import Floors, guard_node, leave_guard

_KEPT, _SHOWN = 7200, 8
_AGAIN = 1.0
# In the rank's folder: the curve, where a guard that nobody follows has stopped it.
STOPPED = "stopped-for-memory.jsonl"
# Page cache is evicted below what the plan leaves, and above this much nothing is short.
_SOFT_MOST = 8 * GIB
# Without a plan: this share of what is there. Nothing is stopped then.
_SOFT_SHARE = 50
_LESS = 0.03
_FLOORS = ("soft floor:", "hard floor:")
_LOAD = PHASE_ORDER.index(Phase.LOAD)


class LoadGuard:
    """One start. curves: node -> its samples, the oldest first. stopped: a node has stopped its rank.

    known: figures of the plan that another process made (figures_of), where this one has no ledgers. stops: node -> how
    it ends what loads there, in place of the ranks.
    """

    def __init__(
        self,
        services: Services,
        plan: Plan,
        known: Mapping[str, float] | None = None,
        stops: Mapping[str, Command] | None = None,
    ) -> None:
        self._services, self._plan, self.stopped = services, plan, False
        self._stops = stops or {}
        self._known = known or {}
        self._marks: dict[Phase, dict[str, int]] = {}
        self.curves: dict[str, deque[LoadSample]] = {
            node: deque(maxlen=_KEPT) for node in dict.fromkeys(plan.placement.nodes)
        }

    async def follow(self, node: str) -> None:
        """Watches the node until cancelled. Raises NotReady once the node has stopped its rank; a node without python3
        has no guard."""
        services = self._services
        if not self._is_asked:
            return
        command = guard_node(self._floors(node), _files(services, self._plan.recipe, node), self._stop(node))
        while True:
            try:
                async with aclosing(services.hosts[node].stream(command)) as lines:  # type: ignore[type-var]
                    async for line in lines:
                        self._line(node, line)
            except NodeError:
                pass  # the rank's log reports it; the guard continues with the connection
            else:
                return
            await services.clock.sleep(_AGAIN)

    async def leave(self) -> None:
        """Leaves a guard on each node while its ranks run and nobody follows them; a node that cannot be asked gets
        none."""
        services, name, recipe = self._services, self._plan.deployment, self._plan.recipe
        if not self._is_asked or self._plan.recipe.model.simulated:
            return
        for node in self.curves:
            spec = next(spec for spec in self._plan.specs if spec.node == node)
            until = self._of.follow(handle(services, name, spec), 1)
            log = f"{process.rank_dir(services.state_on(node), name, spec.rank)}/{STOPPED}"
            what = self._floors(node), _files(services, recipe, node), self._stop(node), until, log
            with suppress(NodeError):
                await services.run(node, leave_guard(*what))

    @property
    def _is_asked(self) -> bool:
        return self._plan.recipe.loading.guard and not self._services.cluster.simulated

    @property
    def _of(self) -> ModuleType:
        return docker if self._plan.recipe.engine.runtime is Runtime.DOCKER else process

    def _stop(self, node: str) -> Command:
        if self._stops:
            return self._stops[node]
        plan = self._plan
        ranks = [handle(self._services, plan.deployment, spec) for spec in plan.specs if spec.node == node]
        made: Command = self._of.stop(ranks, int(engine_of(plan.recipe).stop.grace))
        return made

    def mark(self, phase: Phase) -> None:
        """The head enters a phase."""
        self._marks[phase] = {node: samples[-1].available for node, samples in self.curves.items() if samples}

    def fell(self, node: str) -> int | None:
        """Bytes by which available memory fell while weights were read; None where it was not sampled."""
        after = (mark for phase, mark in self._marks.items() if PHASE_ORDER.index(phase) > _LOAD)
        before, later = self._marks.get(Phase.LOAD, {}), next(after, {})
        return before[node] - later[node] if node in before and node in later else None

    def _line(self, node: str, line: str) -> None:
        found = parse_load(line)
        if found is None:
            return
        if found.stop:
            self.stopped = True
            raise self._reason(node, found.stop)
        if found.hung:
            text = (
                f"the memory guard of {node} gave no sign of life for {found.hung:.0f} s: it was ended and begun again"
            )
            self._services.sink.report(Notice(text, warning=True))
            return
        if found.freed >= GIB and not any(one.freed >= GIB for one in self.curves[node]):
            text = f"{node}: MemFree {gib(found.free)} while loading: {gib(found.freed)} of page cache evicted"
            self._services.sink.report(Notice(text))
        self.curves[node].append(found)

    def _reason(self, node: str, why: str) -> NotReady:
        last = self.curves[node][-1] if self.curves[node] else LoadSample()
        what = f"{node} has {gib(last.available)} available, the floor is {gib(self._floors(node).hard)}"
        if why == "stall":
            what = f"all tasks of {node} waited for memory in {last.stall:.0f} % of the last 10 s"
        message = f"stopped while loading: {what}; all ranks were stopped before the node stalls"
        return NotReady(message, setting_to_lower(self._plan.recipe), tuple(self.curve(node)))

    def _floors(self, node: str) -> Floors:
        if self._plan.recipe.model.simulated:
            return Floors(0, 0)
        ledger = next((one for one in self._plan.ledgers if one.node == node), None)
        soft, hard = (int(self._known.get(f"{word}{node}", 0)) for word in _FLOORS)
        found = Floors(soft, hard) if soft and ledger is None else load_floors(ledger)
        return replace(found, hard=self._plan.recipe.loading.floor or found.hard)

    def curve(self, node: str) -> Iterator[str]:
        """The last samples as text."""
        samples = self.curves[node]
        for one in islice(samples, max(0, len(samples) - _SHOWN), None):
            stall = f", waited for memory {one.stall:.0f} %" if one.stall >= 0 else ""
            ago = f"{one.at - samples[-1].at:+.0f} s"
            yield f"{node} {ago}: MemFree {gib(one.free)}, MemAvailable {gib(one.available)}{stall}"


def load_floors(ledger: MemoryLedger | None) -> Floors:
    """Relative to what the plan leaves; without a plan page cache is evicted, and nothing is stopped."""
    if ledger is None:
        return Floors(GIB, 0)
    level = ledger.lowest
    if level <= 0 or ledger.unknown:
        return Floors(ledger.pool.bytes // _SOFT_SHARE, 0)
    return Floors(min(_SOFT_MOST, level), floors(level).stop)


def figures_of(node: str, floors: Floors) -> dict[str, float]:
    """The floors as figures, for a process that watches a start it has not planned."""
    return {f"{word}{node}": float(size) for word, size in zip(_FLOORS, (floors.soft, floors.hard), strict=True)}


def setting_to_lower(recipe: Recipe) -> str:
    """The setting whose value leaves the node more."""
    serving = recipe.serving
    if serving.kv_cache_bytes:
        return f"lower serving.kv_cache_bytes ({gib(serving.kv_cache_bytes)}): the engine measures nothing with it"
    if fraction := serving.memory_fraction:
        return f"lower serving.memory_fraction ({fraction:g}), for example to {fraction - _LESS:.2f}"
    return "lower serving.batched_tokens or serving.sequences, or use a loader with smaller buffers"


def _files(services: Services, recipe: Recipe, node: str) -> list[str]:
    where = services.cluster.node(node)
    if recipe.model.path:
        return [model_path(where, recipe)]
    return [f"{where.paths.hub}/models--{recipe.model.id.replace('/', '--')}"]
