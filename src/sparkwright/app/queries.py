"""`status` and `logs`: the deployments as the nodes themselves report them."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, suppress

from sparkwright.app.lease import taken_down
from sparkwright.app.ranks import End, listing
from sparkwright.app.ranks import follow as followed
from sparkwright.app.services import Services, by_node, together
from sparkwright.domain.deployment import Answer, Deployment
from sparkwright.domain.errors import NodeError, NotReady, SparkwrightError, UsageError
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.live import SERVING, DeploymentState, Live, Supervised
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.replica import replica_name, split_replica_name
from sparkwright.domain.units import duration
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.ranks import ranks_fact
from sparkwright.facts.store import CLOSED, supervised_fact
from sparkwright.remote import docker, process, service

_AUDITED = 86400.0
PROBE = "Reply with one word."
PROBE_TOKENS = 1
PROBE_SECONDS = 5.0
_MAY_SERVE = (DeploymentState.READY, DeploymentState.RUNNING)
Probed = tuple[DeploymentState, Answer | None, str]


@dataclass(frozen=True, slots=True)
class _Told:
    """The report of one node. trouble: the reason why it could not be asked."""

    ranks: tuple[RankStatus, ...] = ()
    supervised: tuple[Supervised, ...] = ()
    trouble: tuple[str, ...] = ()


async def status(services: Services, probe: bool = True) -> tuple[tuple[Deployment, ...], tuple[str, ...]]:
    """Deployments of the cluster, and sentences about nodes that could not be asked. Health is a real token: one that

    the supervisor asked for, or one of our own where none is at work.
    """
    # The digest of the program that `up` would put on a head is read while the nodes answer
    asked, ours = await asyncio.gather(
        by_node(services.cluster.names, lambda name: _told(services, name)),
        asyncio.to_thread(lambda: services.program.digest if services.program else ""),
    )
    told = asked.values()
    ranks = [r for one in told for r in one.ranks]
    watched = _watchers(s for one in told for s in one.supervised)
    names = sorted({r.deployment for r in ranks} | set(watched))
    found = await together(
        _deployment(services, [r for r in ranks if r.deployment == name], watched.get(name), probe) for name in names
    )
    trouble = tuple(s for one in told for s in one.trouble)
    return tuple(replace(_corrected(one, not trouble), program=ours, all_asked=not trouble) for one in found), trouble


def _watchers(found: Iterable[Supervised]) -> dict[str, Supervised]:
    """The supervisor of each deployment. A standby's report counts before that of the head."""
    watched: dict[str, Supervised] = {}
    for one in sorted(found, key=lambda one: one.taken):
        before = watched.get(one.deployment)
        watched[one.deployment] = replace(one, fenced=before.fenced) if before and one.taken else one
    return watched


def _corrected(found: Deployment, all_asked: bool) -> Deployment:
    """The deployment corrected by the nodes' present state: they were asked after its supervisor wrote its report.

    all_asked: every node answered, so that a rank on none of them is gone.
    """
    live = found.supervised.current if found.supervised else None
    if not found.supervised or not live:
        return found
    problems = [*_ended(found.ranks), *(_missing(found.ranks) if all_asked else ())] if live.phase in SERVING else []
    problems = [one for one in problems if one not in found.problems]
    if problems:
        problems.append(f"its supervisor's report of {duration(found.supervised.now - live.at)} ago does not have that")
    if why := found.supervised.unwritable:
        problems.append(f"{why} on {found.supervised.node}: its supervisor cannot write its report")
    state = DeploymentState.DEGRADED if problems and found.state is DeploymentState.READY else found.state
    return replace(found, state=state, problems=(*found.problems, *problems))


def _ended(ranks: Sequence[RankStatus]) -> list[str]:
    return [f"rank {r.rank} on {r.node} {r.state} with code {r.code}" for r in ranks if not r.running]


def _missing(ranks: Sequence[RankStatus]) -> list[str]:
    have = {r.rank for r in ranks}
    return [f"rank {k} is on no node that answered" for k in range(ranks[0].world if ranks else 0) if k not in have]


def unknown(services: Services, deployment: str, known: Iterable[str]) -> UsageError:
    """The error for a name that no node knows; it lists the existing names."""
    there = ", ".join(sorted(known)) or "none"
    return UsageError(f"no deployment {deployment} on {', '.join(services.cluster.names)}", f"there are: {there}")


async def left_alone(services: Services, found: Iterable[Deployment]) -> frozenset[str]:
    """Names of those whose `up` was interrupted before it could leave a supervisor: nobody asked for that."""
    alone = [one for one in found if not one.supervised and any(rank.running for rank in one.ranks)]

    async def is_recorded(one: Deployment) -> bool:
        node = next((rank.node for rank in one.ranks if rank.rank == 0), one.ranks[0].node)
        with suppress(NodeError):
            state = services.state_on(node)
            return bool((await services.run(node, service.read_desired(state, one.name))).stdout.strip())
        return True

    known = await together(is_recorded(one) for one in alone)
    return frozenset(one.name for one, recorded in zip(alone, known, strict=True) if not recorded)


async def taken_down_by(services: Services, deployment: str) -> str:
    """The person and time of a `down` of an absent deployment, from the heads' audit logs; '' without one.

    A model with replicas was taken down with its first one.
    """
    names = (deployment, replica_name(deployment, 1))
    told = await together(
        taken_down(services, node, name, _AUDITED) for name in names for node in services.cluster.names
    )
    return next(filter(None, told), "")


async def _told(services: Services, name: str) -> _Told:
    """Both in one round trip. A node without python3 has no supervisor."""
    state = services.state_on(name)
    listed, watched = ranks_fact(services.cluster.node(name)), supervised_fact(name, state)
    try:
        first, second = await services.hosts[name].run_all((listed.command, watched.command))
    except NodeError as error:
        return _Told(trouble=(error.message,))
    ranks, supervised = listed.read(first), watched.read(second)
    wrong = [ranks] if isinstance(ranks, Unknown) else []
    wrong += [supervised] if isinstance(supervised, Unknown) and supervised.why == CLOSED else []
    trouble = tuple(f"{name}: {one.why}{one.raw and f': {one.raw}'}" for one in wrong)
    return _Told(known_or_none(ranks) or (), known_or_none(supervised) or (), trouble)


async def _deployment(
    services: Services, ranks: Sequence[RankStatus], supervised: Supervised | None, probe: bool
) -> Deployment:
    ordered = tuple(sorted(ranks, key=lambda r: r.rank))
    live = supervised.current if supervised else None
    found = _as_watched(supervised, live) if supervised and live else await _as_seen(services, ordered, probe)
    if supervised and not live:
        # It may serve all the same, and nobody would notice its end
        state = DeploymentState.DEGRADED if found.state in _MAY_SERVE else found.state
        name, endpoint = supervised.deployment, supervised.endpoint or found.endpoint
        problems = (*found.problems, supervised.trouble)
        found = replace(found, name=name, state=state, endpoint=endpoint, problems=problems)
    if supervised and (supervised.fenced or supervised.taken):
        head = services.cluster.supervisor_node if supervised.taken else supervised.node
        second = supervised.endpoint if supervised.taken else supervised.second
        said = f"the gateway on {head} does not serve: {supervised.fenced or 'nobody has heard of it lately'}"
        said += f"; clients use {second}" if second else ""
        said += f", {supervised.node} supervises it meanwhile" if supervised.taken else ""
        said += ", `sparkwright up` gives the role back" if second else ""
        state = DeploymentState.DEGRADED if found.state in _MAY_SERVE else found.state
        found = replace(found, state=state, problems=(*found.problems, said))
    simulated = found.simulated or any(rank.simulated for rank in ordered)
    return replace(found, ranks=ordered, supervised=supervised, simulated=simulated)


def _as_watched(supervised: Supervised, live: Live) -> Deployment:
    """The deployment as its supervisor reports it: that one has watched for longer than one call can."""
    return Deployment(
        name=supervised.deployment,
        state=live.phase,
        ranks=(),
        endpoint=supervised.endpoint or live.engine_address,
        problems=tuple(sentence for _, sentence in live.troubles),
        simulated=live.simulated,
    )


async def _as_seen(services: Services, ordered: tuple[RankStatus, ...], probe: bool) -> Deployment:
    if not ordered:
        return Deployment("", DeploymentState.STOPPED, ())
    first, problems = ordered[0], (*_missing(ordered), *_ended(ordered))
    state, answer, said = _unproven(ordered, problems, probe), None, ""
    head = next((r for r in ordered if r.rank == 0 and r.running), None)
    if probe and head and not problems:
        state, answer, said = await _probe(services, head)
    return Deployment(
        name=first.deployment,
        state=state,
        ranks=ordered,
        # Of a rank elsewhere it is known where the head's engine listens, and not where clients reach it
        endpoint=f"http://{first.bind}:{first.port}/v1" if first.port and first.rank == 0 else "",
        answer=answer,
        problems=(*problems, *((said,) if said else ())),
        simulated=any(r.simulated for r in ordered),
    )


def _unproven(ranks: Sequence[RankStatus], problems: Sequence[str], probe: bool) -> DeploymentState:
    """The state as far as it is known without a token."""
    if not any(r.running for r in ranks):
        failed = any(r.exit_code != 0 for r in ranks)
        return DeploymentState.FAILED if failed else DeploymentState.STOPPED
    if problems:
        return DeploymentState.DEGRADED
    return DeploymentState.LOADING if probe else DeploymentState.RUNNING


async def _probe(services: Services, head: RankStatus) -> Probed:
    """One real token, or what came instead: a server that is up without giving one is degraded, not loading."""
    address = "127.0.0.1" if head.bind in ("", "0.0.0.0") else head.bind
    key = services.secrets.get(head.key_env) if head.key_env else None
    if head.key_env and key is None:
        return DeploymentState.LOADING, None, f"not asked for a token: its key, ${head.key_env}, is not set here"
    try:
        async with services.hosts[head.node].tunnel(address, head.port) as url:
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    answer = await services.endpoint.ask(url, head.served_name, PROBE, PROBE_TOKENS, key)
                return DeploymentState.READY, answer, ""
            except TimeoutError:
                said = f"no token within {PROBE_SECONDS:.0f} s: busy with a long prefill, or stuck"
            except NotReady as error:
                said = error.message
            up = await services.endpoint.models(url, key)
    except SparkwrightError as error:
        return DeploymentState.DEGRADED, None, error.message
    said = said.replace(url, f"http://{address}:{head.port}")  # the tunnel's end here says nothing to anybody
    return (DeploymentState.DEGRADED, None, said) if up else (DeploymentState.LOADING, None, f"not up yet: {said}")


async def logs(
    services: Services, deployment: str, rank: int | None, tail: int, follow: bool
) -> AsyncIterator[tuple[RankStatus, str]]:
    """(rank, line) of one or all ranks; with `follow`, as they come. Raises UsageError for an unknown deployment."""
    ranks = await chosen(services, deployment, rank)
    queue: asyncio.Queue[tuple[RankStatus, str] | None] = asyncio.Queue(1000)

    async def pump(status: RankStatus) -> None:
        async with aclosing(_log(services, status, tail, follow)) as stream:  # type: ignore[type-var]
            async for line in stream:
                if isinstance(line, str):
                    await queue.put((status, line))

    async def pump_all() -> None:
        try:
            await together(pump(status) for status in ranks)
        finally:
            await queue.put(None)

    pumping = asyncio.create_task(pump_all())
    try:
        while (item := await queue.get()) is not None:
            yield item
        await pumping
    finally:
        pumping.cancel()


async def chosen(services: Services, deployment: str, rank: int | None) -> list[RankStatus]:
    """The ranks of a deployment or of all replicas of a model, running or ended, in order; or one.

    Raises UsageError, or the error of a lost node.
    """
    found = await listing(services, services.cluster.names)
    mine = [rank for rank in found.ranks if deployment in (rank.deployment, rank.replica_of)]
    mine = sorted(mine, key=lambda one: (split_replica_name(one.deployment)[1] if one.replica_of else 0, one.rank))
    if not mine:
        for error in found.lost.values():  # it may well be on the node that does not answer
            raise error
        raise unknown(services, deployment, {rank.deployment for rank in found.ranks})
    asked = [r for r in mine if rank is None or r.rank == rank]
    if not asked:
        there = ", ".join(dict.fromkeys(str(r.rank) for r in mine))
        raise UsageError(f"{deployment} has no rank {rank}", f"its ranks: {there}")
    return asked


def _log(services: Services, status: RankStatus, tail: int, follow: bool) -> AsyncIterator[str | End]:
    host = services.hosts[status.node]
    if follow:
        return followed(host, status.runtime, status.handle, tail)
    return host.stream((docker if status.runtime == Runtime.DOCKER else process).logs(status.handle, tail))
