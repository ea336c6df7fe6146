"""`down`: no container, process, file or lease of a deployment stays, also after a half-failed `up`."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.app import ranks as rank_work
from sparkwright.app.disarm import disarm, taking_over
from sparkwright.app.survey import ranks_fact
from sparkwright.app.tasks import each, together
from sparkwright.app.world import Survey, World
from sparkwright.commands.host import script
from sparkwright.domain.errors import CommandFailed, NodeError, UsageError
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.plan import Plan
from sparkwright.engines.catalog import ENGINES
from sparkwright.ports import Notice, StepDone, StepStarted

_GRACE = 30.0
_FORGET = r"""
d="$(x "$1")/deployments/$2"; [ ! -e "$d" ] || echo was
rm -rf "$d"; rmdir "${d%/*}" 2>/dev/null; [ ! -e "$d" ]
"""


@dataclass(frozen=True, slots=True)
class Removed:
    """files: nodes where a folder of the deployment was left."""

    deployment: str
    ranks: tuple[RankStatus, ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Our ranks as the nodes tell them, and why some nodes could not be asked."""

    ranks: tuple[RankStatus, ...]
    lost: dict[str, NodeError]

    def of(self, deployment: str) -> tuple[RankStatus, ...]:
        return tuple(r for r in self.ranks if r.deployment == deployment)


async def down(world: World, deployment: str, seize: bool = False) -> Removed:
    """Stops and removes on every node that answers.

    Raises UsageError when other deployments exist but nothing of this one; nothing at all is fine. Raises Unreachable
    for nodes that do not answer, after the others have been cleaned.
    """
    found = await listing(world, world.cluster.names)
    nodes = [name for name in world.cluster.names if name not in found.lost]
    removed = await _remove(world, deployment, nodes, seize) if nodes else Removed(deployment, ())
    for error in found.lost.values():
        raise _still(error, deployment, nodes)
    others = sorted({r.deployment for r in found.ranks})
    if others and not removed.ranks and not removed.files:
        there = ", ".join(world.cluster.names)
        raise UsageError(f"no deployment {deployment} on {there}", f"running or left: {', '.join(others)}")
    return removed


async def _remove(world: World, deployment: str, nodes: Sequence[str], seize: bool) -> Removed:
    async with taking_over(world, nodes, deployment, f"down {deployment}", seize):
        began = world.clock.monotonic()
        watched = await disarm(world, nodes, deployment) if world.program else ()
        # Only now: until it was ended, a supervisor may have started some.
        mine = tuple(r for r in await all_ranks(world, nodes) if r.deployment == deployment)
        world.sink.tell(StepStarted("stop", f"{len(mine)} rank(s) of {deployment}"))
        await rank_work.stop_all(world, mine, _grace(mine), remove=True)
        files = tuple(dict.fromkeys((*watched, *await forget(world, nodes, deployment))))
        world.sink.tell(StepDone("stop", world.clock.monotonic() - began))
    return Removed(deployment, mine, files)


def _still(error: NodeError, deployment: str, cleaned: Sequence[str]) -> NodeError:
    """The error of a node that is out of reach, with what that means for the deployment."""
    done = f"; {', '.join(cleaned)}: nothing is left of {deployment}" if cleaned else ""
    message = error.message.removeprefix(f"{error.node}: ") + done
    return type(error)(error.node, message, f"{error.cure}; then repeat `sparkwright down {deployment}`")


async def listing(world: World, nodes: Sequence[str]) -> Listing:
    """Our ranks on these nodes, in one round trip a node. Raises nothing for a node that cannot be asked."""

    async def one(name: str) -> tuple[RankStatus, ...] | NodeError:
        try:
            return await _of_node(world, name)
        except NodeError as error:
            return error

    found = dict(zip(nodes, await together(one(name) for name in nodes), strict=True))
    ranks = tuple(r for told in found.values() if not isinstance(told, NodeError) for r in told)
    return Listing(ranks, {name: told for name, told in found.items() if isinstance(told, NodeError)})


async def all_ranks(world: World, nodes: Sequence[str]) -> tuple[RankStatus, ...]:
    """As `listing`, but raises Unreachable when a node could not be asked."""
    found = await listing(world, nodes)
    for error in found.lost.values():
        raise error
    return found.ranks


async def _of_node(world: World, name: str) -> tuple[RankStatus, ...]:
    fact = ranks_fact(world.cluster.node(name))
    found = fact.read(await world.hosts[name].run(fact.command))
    if isinstance(found, Unknown):
        world.sink.tell(Notice(f"{name}: {found.why}", warning=True))
        return ()
    return found


def old_ranks(plan: Plan, survey: Survey) -> tuple[RankStatus, ...]:
    """Ranks of the same deployment that the survey saw, running or not."""
    seen = [f.ranks for f in survey.facts.values() if not isinstance(f.ranks, Unknown)]
    return tuple(r for ranks in seen for r in ranks if r.deployment == plan.deployment)


async def forget(world: World, nodes: Sequence[str], deployment: str) -> tuple[str, ...]:
    """Removes the deployment's folder on every node: pid files, secrets, logs. The nodes that had one."""

    async def one(name: str) -> bool:
        state = world.cluster.node(name).paths.state
        done = await world.hosts[name].run(script(_FORGET, state, deployment, changes=f"forget {deployment}"))
        if not done.ok:
            raise CommandFailed(name, f"files of {deployment} cannot be removed from {state}: {done.stderr.strip()}")
        return "was" in done.stdout.split()

    had = await each(one(name) for name in nodes)
    return tuple(name for name, was in zip(nodes, had, strict=True) if was)


def _grace(ranks: Sequence[RankStatus]) -> float:
    names = {r.engine.split(" ")[0] for r in ranks}
    return max((ENGINES[n].stop.grace for n in names if n in ENGINES), default=_GRACE)
