"""`down`: no container, process, file or lease of a deployment stays, also after a half-failed `up`."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import holding, remove_supervisor, taking_over
from sparkwright.app.queries import taken_down_by, unknown
from sparkwright.app.ranks import listed, reached
from sparkwright.app.serve.keepers import end_keepers
from sparkwright.app.serve.standby import end_unused_role
from sparkwright.app.services import ClusterState, Services, finish_all, together
from sparkwright.domain.errors import CommandFailed, SparkwrightError
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, field
from sparkwright.engines.catalog import ENGINES
from sparkwright.remote import docker
from sparkwright.remote.host import script
from sparkwright.remote.process import ROOM

_GRACE, _CLEAN_GRACE = 30.0, 5
_LEFT = r"""
s="$(x "$1")"; u="sparkwright-*-$2.service"
[ -z "$(docker ps -aq --filter "label=@LABEL@keeper=$2" 2>/dev/null)" ] || echo was
for f in "$s/deployments/$2" "$s/keepers/$2" "$s/supervision/$2" "$HOME"/.config/systemd/user/$u \
  "$s/supervision/_standby/state/supervision/$2" /etc/systemd/system/$u; do
  [ ! -e "$f" ] || echo was; done
""".replace("@LABEL@", docker.LABEL)
_FORGET = (
    ROOM
    + r"""
d="$(x "$1")/deployments/$2"; { [ ! -e "$d" ] && [ ! -L "$d" ]; } || echo was
for r in "$d"/rank*; do drop "$r"; done; drop "$d"; tidy "${d%/*}"; [ ! -e "$d" ]
"""
)


@dataclass(frozen=True, slots=True)
class Removed:
    """files: nodes where a folder of the deployment was left. blind: why some nodes' containers could not be seen."""

    deployment: str
    ranks: tuple[RankStatus, ...]
    files: tuple[str, ...] = ()
    blind: Mapping[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """True if all ranks of the deployment were found."""
        return bool(self.ranks) and {r.rank for r in self.ranks} >= set(range(max(r.world for r in self.ranks)))


async def down(services: Services, deployment: str, seize: bool = False, recipes: Collection[str] = ()) -> Removed:
    """Stops and removes on every node that answers.

    Idempotent: again within a day of a `down` is fine, and so is the name of one of `recipes`, whose `up` may have been
    interrupted before it changed a node. Raises UsageError for any other name that is on no node, Busy where somebody
    else works there, Unreachable for nodes that do not answer, once the others are clean; CommandFailed where it cannot
    be known.
    """
    found = await listed(services, services.cluster.names)
    nodes = [name for name in services.cluster.names if name not in found.lost]
    unseen = found.lost or found.blind or found.of(deployment)
    if not seize and not unseen and not await _left(services, deployment, nodes):
        async with holding(services, nodes, f"down {deployment}", seize):
            pass  # Busy where an `up` of it is under way, which has put nothing there yet
        if deployment not in recipes and not await taken_down_by(services, deployment):
            raise unknown(services, deployment, {rank.deployment for rank in found.ranks})
        return Removed(deployment, ())
    removed = await _remove(services, deployment, nodes, seize) if nodes else Removed(deployment, ())
    for error in found.lost.values():
        # The error of a node that is out of reach, with what that means for the deployment
        done = f"; {', '.join(nodes)}: nothing is left of {deployment}" if nodes else ""
        message = error.message.removeprefix(f"{error.node}: ") + done
        raise type(error)(error.node, message, f"{error.hint}; then repeat `sparkwright down {deployment}`")
    if removed.blind and not removed.whole:
        # Where containers cannot be seen, "nothing was left" would be a guess
        node, why = next(iter(removed.blind.items()))
        again = f"when it can be: `sparkwright down {removed.deployment}` again"
        raise CommandFailed(node, f"{why}: containers of {removed.deployment} may be left there", again)
    return removed


async def _left(services: Services, deployment: str, nodes: Sequence[str]) -> bool:
    """True if any node has files or units of it; changes nothing."""

    asked = (services.run(name, script(_LEFT, services.state_on(name), deployment)) for name in nodes)
    return any("was" in done.stdout.split() for done in await together(asked))


async def _remove(services: Services, deployment: str, nodes: Sequence[str], seize: bool) -> Removed:
    began = services.clock.monotonic()
    if services.program:
        services.sink.report(StepStarted("stop", f"{deployment}, its supervisor first if it has one"))
    try:
        async with taking_over(services, nodes, deployment, f"down {deployment}", seize):
            watched = await remove_supervisor(services, nodes, deployment, "down") if services.program else ()
            # Only now: until it was ended, a supervisor may have started some.
            found = reached(await listed(services, nodes))
            mine = found.of(deployment)
            services.sink.report(StepStarted("stop", f"{len(mine)} rank(s) of {deployment}"))
            names = {r.engine.split(" ")[0] for r in mine}
            grace = max((ENGINES[n].stop.grace for n in names if n in ENGINES), default=_GRACE)
            await rank_work.stop_all(services, mine, grace, remove=True)
            await end_keepers(services, nodes, [deployment])
            files = tuple(dict.fromkeys((*watched, *await forget(services, nodes, deployment))))
            if services.program:
                await end_unused_role(services, tuple(nodes))
    except asyncio.CancelledError:
        text = f"interrupted: some of {deployment} may be left; `sparkwright down {deployment}` again takes it away"
        services.notice(text, warning=True)
        raise
    services.sink.report(StepDone("stop", services.clock.monotonic() - began))
    return Removed(deployment, mine, files, found.blind)


def old_ranks(plan: Plan, cluster_state: ClusterState) -> tuple[RankStatus, ...]:
    """Ranks of the same deployment that the survey saw, running or not."""
    seen = [rank for facts in cluster_state.facts.values() for rank in known_or_none(facts.ranks) or ()]
    return tuple(rank for rank in seen if rank.deployment == plan.deployment)


async def forget(services: Services, nodes: Sequence[str], deployment: str) -> tuple[str, ...]:
    """Removes the deployment's folder on every node: pid files, secrets, logs. The nodes that had one."""

    async def one(name: str) -> bool:
        state = services.state_on(name)
        done = await services.run(name, script(_FORGET, state, deployment, changes=f"forget {deployment}"))
        if not done.ok:
            raise CommandFailed(name, f"files of {deployment} cannot be removed from {state}: {done.stderr.strip()}")
        return "was" in done.stdout.split()

    had = await finish_all(one(name) for name in nodes)
    return tuple(name for name, was in zip(nodes, had, strict=True) if was)


async def clean_nodes(services: Services, plan: Plan) -> None:
    """Takes away what there is of the deployment, as far as the nodes can be reached; reports what could not be."""
    try:
        found = await rank_work.listing(services, plan.placement.nodes)
        await rank_work.stop_all(services, found.of(plan.deployment), _CLEAN_GRACE, remove=True)
        there = [n for n in plan.placement.nodes if n not in found.lost]
        await end_keepers(services, there, [plan.deployment])
        await forget(services, there, plan.deployment)
        for error in found.lost.values():
            raise error
    except SparkwrightError as error:
        text = f"not everything could be undone: {error.message}; `sparkwright down {plan.deployment}` continues"
        services.notice(text, warning=True)
