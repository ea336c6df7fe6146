"""Models from the hub: fetched once, by one node; the others receive while it comes."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sparkwright.app.copy.transfer import BETWEEN, NO_PROGRAM, Copied, CopyStop, NoPython, follow, send_chain
from sparkwright.app.services import ClusterState, Services, together
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.command import Command
from sparkwright.domain.errors import CommandFailed, NodeError
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Happening, Progress
from sparkwright.domain.units import GIB
from sparkwright.ports import Sink
from sparkwright.remote import staging

_SHOWN = 3
_STEP, _EVERY = 0.25, 10.0


@dataclass(slots=True)
class _Arriving:
    """A sink that calls for a pass to the other nodes whenever so many GiB more have come, and at times in between:
    the largest part of them may have been files that were not whole yet."""

    sink: Sink
    step: float
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _passed: float = 0.0
    _over: bool = False

    def report(self, happening: Happening) -> None:
        self.sink.report(happening)
        done = happening.done or 0.0 if isinstance(happening, Progress) else 0.0
        if done >= self._passed + self.step:
            self._passed = done
            self._due.set()

    async def more(self) -> bool:
        """Waits for the next pass; False when all has come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_EVERY):
                await self._due.wait()
        self._due.clear()
        return not self._over

    def end(self) -> None:
        self._over = True
        self._due.set()


async def fetch(
    services: Services, plan: Plan, cluster_state: ClusterState, stops: Sequence[CopyStop], what: Copied
) -> None:
    """Downloads the model to the first node and copies finished files to the others meanwhile.

    A model that is given by its path has no other source than the nodes. Raises CommandFailed.
    """
    model, node = plan.recipe.model, services.cluster.node(plan.head)
    if model.path or not model.id:
        lacks = "; ".join(f"{name}: {missing_files(cluster_state, name)}" for name in cluster_state.checkpoints)
        hint = "copy the missing files to one node; the others get them from there"
        raise CommandFailed(node.name, f"{model.label} is complete on no node ({lacks})", hint)
    token = services.secrets.get("HF_TOKEN")
    command = staging.download(node.paths.hub, model.id, model.revision, token.reveal() if token else "")
    services.notice(f"{model.id}: whole on no node; {node.name} fetches it from the hub")
    code, said = await _followed(services, plan, command, stops, what)
    where = f"{model.id} is complete on no node (here: {missing_files(cluster_state, plan.head)})"
    if code == NO_PROGRAM:
        hint = "install the hub's client there (`pipx install huggingface_hub` or `uv tool install huggingface_hub`)"
        raise CommandFailed(node.name, f"{where}, and there is no `hf` to fetch it with", hint)
    if code:
        hint = f"check the name, the licence and the token (HF_TOKEN); by hand: hf download {model.id}"
        plain = BETWEEN.join(line for line in said.split(BETWEEN) if not line.startswith("Hint:"))
        raise CommandFailed(node.name, f"{where}, and `hf download` failed: {plain}", hint)
    done = await services.run(node.name, staging.settle(stops[0].root))
    if not done.ok:
        raise CommandFailed(node.name, f"{model.id}: the download could not be completed: {done.stderr.strip()[:200]}")


async def _followed(
    services: Services, plan: Plan, command: Command, stops: Sequence[CopyStop], what: Copied
) -> tuple[int, str]:
    """The download, and passes to the other nodes while it runs; its exit code and last lines."""
    model, node = plan.recipe.model, stops[0].node
    arriving = _Arriving(services.sink, max(_STEP, model.size / GIB / 100))
    end: list[tuple[int, str]] = []

    async def fetched() -> None:
        try:
            seen = replace(services, sink=arriving)
            end.append(await follow(seen, node, command, f"download {model.id}", model.size))
        finally:
            arriving.end()

    async def passed_on() -> None:
        while await arriving.more():
            with suppress(NodeError, NoPython):  # what did not go now goes at the end, or fails there
                await send_chain(services, plan, what, stops)

    await together([fetched(), *([passed_on()] if len(stops) > 1 else [])])
    return end[0]


def missing_files(cluster_state: ClusterState, node: str) -> str:
    """The missing files of the model on a node, as text."""
    found = cluster_state.checkpoints.get(node)
    if not isinstance(found, Checkpoint):
        return f"it could not be read{f': {found.raw or found.why}' if found is not None else ''}"
    more = f" and {len(found.missing) - _SHOWN} more" if len(found.missing) > _SHOWN else ""
    return ", ".join(found.missing[:_SHOWN]) + more or ("nothing of it is there" if not found.files else "complete")
