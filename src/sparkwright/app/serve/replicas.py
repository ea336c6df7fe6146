"""Several replicas of a model behind one address: started, changed, restarted one at a time, and taken away.

Each replica is a deployment of its own, NAME-r1 and so on, on its own group of nodes. All their supervisors, and the
one gateway, are on the cluster's head.
"""

from collections.abc import Collection, Sequence

from sparkwright.app.serve.launch import Options
from sparkwright.app.serve.launch import up as bring_up
from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.app.serve.replica_groups import (
    Member,
    ReplicaStart,
    check_names,
    choose_groups,
    find_present,
    group_cluster,
    group_ports,
    number_asked,
    replicas_of,
    starts_of,
    survey,
)
from sparkwright.app.serve.restart import halt_deployment, restart
from sparkwright.app.serve.stop import Removed, down
from sparkwright.app.services import LaunchRequest, Services, together
from sparkwright.checks.supervision import NO_SSH
from sparkwright.domain.errors import NodeError, NotReady, SparkwrightError, UsageError
from sparkwright.domain.finding import Finding
from sparkwright.domain.progress import StepStarted
from sparkwright.domain.replica import replica_name, split_replica_name
from sparkwright.domain.units import DRAIN_SECONDS
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.store import supervised_fact


@dataclass(frozen=True, slots=True)
class ReplicasOutcome:
    """The result of `up` for all replicas, by number. removed: replicas that were too many."""

    name: str
    outcomes: tuple[Outcome, ...]
    removed: tuple[str, ...] = ()


async def wants_replicas(services: Services, request: LaunchRequest, asked: int) -> bool:
    """True if the request is about a model with replicas: asked for, or there already.

    Raises UsageError for the name of a single replica, which `up` never changes alone.
    """
    count = asked or request.recipe.serving.replicas
    head = services.cluster.supervisor_node
    try:
        found = known_or_none(await services.read(head, supervised_fact(head, services.state_on(head)))) or ()
    except NodeError:
        if count > 1:
            raise
        return False  # whoever asks all nodes names all that are away in one message
    of = split_replica_name(request.deployment)[0]
    models = {one.replica_of for one in found if one.replica_of}
    if of in models:
        said = f"{request.deployment} is a replica of {of}, and all of its replicas have one recipe"
        raise UsageError(said, f"`--name {of}` changes all of them, one after the other")
    if count <= 1 and not {request.deployment, request.replaces} & models:
        return False
    if not request.supervised:
        said = f"{request.deployment}: several replicas need the gateway, which sends each request to one of them"
        raise UsageError(said, "leave out `--no-supervise`")
    if request.recipe.serving.on_demand:
        raise UsageError(f"{request.deployment}: replicas and `serving.on_demand` exclude each other")
    return True


async def up_replicas(services: Services, request: LaunchRequest, options: Options, asked: int = 0) -> ReplicasOutcome:
    """Start what is missing, change what is not as in the recipe, take away what is too many.

    New replicas first, then those that change, one after the other; it stops at the first that fails, and the others
    go on serving. Raises Refused before anything is changed if there are not enough nodes; else as `up`.
    """
    services.sink.report(StepStarted("replicas", f"asking {', '.join(services.cluster.names)}"))
    present = await find_present(services, request)
    count = number_asked(asked, request.recipe, [one.number for one in present.members])
    check_names(request.deployment, count)
    seen = await survey(services, request.recipe)
    grouping = choose_groups(services, request.recipe, count, present, seen)
    starts = await starts_of(services, request, grouping, present, seen)
    surplus = [one for one in present.members if one.number in grouping.dropped]
    made: dict[int, Outcome] = {}
    for start in sorted(starts, key=lambda one: (not one.fresh, one.number)):
        made[start.number] = await _started(start, options, starts, made, services)
    if not options.dry_run:
        for member in surplus:
            if member.serves:  # its requests under way end first
                await halt_deployment(services, member.name)
            await down(services, member.name)
    return ReplicasOutcome(request.deployment, tuple(made[n] for n in sorted(made)), tuple(one.name for one in surplus))


async def plan_groups(services: Services, request: LaunchRequest, asked: int = 0) -> tuple[Outcome, ...]:
    """The plan of each group of nodes on its own, for files of tools that start them without our gateway.

    Groups are those that `up` would choose. Raises Refused if there are not enough nodes.
    """
    present = await find_present(services, request)
    count = number_asked(asked, request.recipe, [one.number for one in present.members])
    check_names(request.deployment, count)
    grouping = choose_groups(services, request.recipe, count, present, await survey(services, request.recipe))
    made = []
    for number, nodes in grouping.groups.items():
        one = replace(
            request,
            deployment=replica_name(request.deployment, number),
            replaces=present.replaced.get(number, ""),
        )
        there = replace(services, cluster=group_cluster(services.cluster, nodes))
        made.append(await prepare(there, group_ports(services.cluster, one, number)))
    return tuple(made)


async def _started(
    start: ReplicaStart, options: Options, starts: Sequence[ReplicaStart], made: Collection[int], services: Services
) -> Outcome:
    try:
        outcome = await bring_up(start.services, start.request, options)
        if start.fresh and (cut := _cut_off(outcome)):
            await down(services, start.request.deployment)
            said = f"{start.request.deployment}: taken away again, for no client would reach it: {cut.title}"
            raise NotReady(f"{said} ({cut.evidence})", str(cut.remedy))
        return outcome
    except SparkwrightError as error:
        done = [one.request.deployment for one in starts if one.number in made]
        rest = [one.request.deployment for one in starts if one.number not in made and one.number != start.number]
        said = f"; ready before it: {', '.join(done)}" if done else ""
        error.message += said + (f"; not touched: {', '.join(rest)}" if rest else "")
        raise


def _cut_off(outcome: Outcome) -> Finding | None:
    """The finding that the gateway's node does not reach the replica by ssh, None if it does."""
    return next((one for one in outcome.armed.findings if one.code == NO_SSH.code), None) if outcome.armed else None


async def restart_replicas(
    services: Services, of: str, members: Sequence[Member], drain: float = DRAIN_SECONDS, rolling: bool = False
) -> dict[str, float]:
    """Seconds of each restart. rolling: the next only when the one before serves again, so that others always serve.

    It stops at the first that does not serve again. Raises NotReady also before a restart that would leave none.
    """
    names = [one.name for one in members]
    if not rolling:
        took = await together(restart(services, name, drain) for name in names)
        return dict(zip(names, took, strict=True))
    done: dict[str, float] = {}
    for name in names:
        left = names[len(done) + 1 :]
        try:
            await _require_another(services, of, name)
            done[name] = await restart(services, name, drain)
        except SparkwrightError as error:
            error.message += f"; restarted before it: {', '.join(done)}" if done else ""
            error.message += f"; not restarted: {', '.join(left)}" if left else ""
            raise
    return done


async def _require_another(services: Services, of: str, name: str) -> None:
    others = [one for one in await replicas_of(services, of) if one.name != name]
    if not any(one.serves for one in others):
        there = ", ".join(one.name for one in others) or "no other replica"
        said = f"{name}: no other replica of {of} serves ({there}), so its restart would refuse requests"
        raise NotReady(said, f"`sparkwright restart {name}` restarts it all the same")


async def down_replicas(
    services: Services, members: Sequence[Member], seize: bool = False, recipes: Collection[str] = ()
) -> tuple[Removed, ...]:
    """Take away one after the other; a node that does not answer is reported after the others are gone."""
    gone, failed = [], None
    for member in members:
        try:
            gone.append(await down(services, member.name, seize, recipes))
        except SparkwrightError as error:
            failed = failed or error
    if failed:
        raise failed
    return tuple(gone)
