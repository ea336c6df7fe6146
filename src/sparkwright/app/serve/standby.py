"""The standby of the head: files for gateway and supervisors on the second node, and on both the keeper of the votes.

The order is what makes "never both" true from the first second. The head gets its votes before the standby's program
starts, and a head that has had the role once serves only while it has them.
"""

import json
from collections.abc import Sequence
from hashlib import sha256

from sparkwright.app.lease import remove_supervisor, run_or_raise, supervisor_tag
from sparkwright.app.serve.gateway import ENDPOINT, GatewayInstall, install_standby_gateway
from sparkwright.app.serve.head_program import Kept, keep_running, manager_of, service_host_of, unpacked
from sparkwright.app.serve.head_ssh import open_ways
from sparkwright.app.serve.notify import apply_notify
from sparkwright.app.services import Services, finish_all
from sparkwright.checks.supervision import NO_STANDBY, TWO_NODES
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.errors import CommandFailed, NodeError
from sparkwright.domain.finding import Finding
from sparkwright.domain.live import Desired
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import StepStarted
from sparkwright.domain.service import Installation, Service, ServiceHost
from sparkwright.domain.standby import (
    FOLDER,
    NEEDS_HEAD,
    ROLE,
    TERM,
    TREE,
    StandbyRole,
    voters_of,
)
from sparkwright.domain.values import dataclass, replace
from sparkwright.remote import service
from sparkwright.remote import standby as commands
from sparkwright.remote.seal import remove_seals

SECRETS = ("HF_TOKEN",)
"""Secrets of every supervisor, besides the engine's own key."""
_STEP = "supervise"


@dataclass(frozen=True, slots=True)
class StandbyInstall:
    """url: of the standby's gateway, '' without one. findings: the reason, or what the owner has to know."""

    url: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Site:
    """One of the two nodes: the role's folder there, and what keeps its program running."""

    where: Installation
    kept: Kept

    @property
    def node(self) -> str:
        return self.where.node

    @property
    def host(self) -> ServiceHost:
        return self.kept[1]


async def install_standby(
    services: Services, plan: Plan, where: Installation, kept: Kept, desired: Desired
) -> StandbyInstall:
    """Idempotent. where, kept, desired: of the deployment on the head. What goes wrong is a finding: the head serves
    without.

    If the standby serves, it gives the role back first.
    """
    cluster, head = services.cluster, plan.supervisor_node
    home = f"{where.state}/supervision/{FOLDER}"
    site = _Site(replace(where, home=home), kept)
    try:
        if not cluster.standby:
            if "role" in (await run_or_raise(services, head, commands.note_second(where.home, ""))).stdout.split():
                await _remove_from(services, sorted(cluster.names, key=lambda name: name == head))
            return StandbyInstall()
        services.sink.report(StepStarted(_STEP, f"standby on {cluster.standby}"))
        return await _install(services, plan, site, where.home, desired)
    except NodeError as error:
        fix = f"when {cluster.standby} is there again: the same `sparkwright up` again"
        return StandbyInstall(findings=(NO_STANDBY.on(error.node, error.message, fix=fix),))


async def succeed_lost_head(services: Services) -> None:
    """Takes a standby's role away from the node that is the head now, if the cluster has the head before no longer: the
    gateway of that role serves on the port that this one's needs. Raises NodeError."""
    cluster, head = services.cluster, services.cluster.supervisor_node
    text = (await services.run(head, service.read(_role_home(services, head), ROLE))).stdout
    try:
        role = from_json(StandbyRole, text) if text else None
    except Unreadable:
        return
    if role and role.standby == head and role.head not in cluster.names:
        services.notice(f"{head} stood by {role.head}, which the cluster has no longer: it is the head now")
        await _remove_from(services, list(cluster.names))


async def reclaim_role(services: Services) -> None:
    """Makes the standby give the role back, if it serves while the head is there again: a person's request goes to
    supervisors on the head. Nothing without a standby; a failure is a notice."""
    cluster, head = services.cluster, services.cluster.supervisor_node
    if not cluster.standby or not services.program:
        return
    try:
        if "lost" not in (await services.run(head, commands.lost_votes(services.state_on(head)))).stdout.split():
            return
        services.notice(f"{cluster.standby} serves in place of {head}; it gives the role back first")
        await run_or_raise(services, cluster.standby, commands.give_back(_role_home(services, cluster.standby)))
        await run_or_raise(services, head, commands.await_votes(_role_home(services, head), 4 * TERM))
    except NodeError as error:
        services.notice(f"{head} has not got its role back: {error.message}", warning=True)


def _role_home(services: Services, node: str) -> str:
    return f"{services.state_on(node)}/supervision/{FOLDER}"


async def end_unused_role(services: Services, nodes: tuple[str, ...]) -> None:
    """Takes the role away with the last deployment of the head; nothing if there is another one. Raises NodeError."""
    head = services.cluster.supervisor_node
    if head not in nodes:
        return
    if "unused" in (await services.run(head, commands.is_unused(services.state_on(head)))).stdout.split():
        # The standby first: it must not miss a head that is taken away
        await _remove_from(services, sorted(nodes, key=lambda name: name == head))


async def _remove_from(services: Services, nodes: list[str]) -> None:
    for name in nodes:
        await remove_supervisor(services, (name,), FOLDER, "the standby's role")
    # Only now: a program that still had the role would make them again
    await finish_all(run_or_raise(services, name, remove_seals(services.state_on(name))) for name in nodes)


async def _role_text(services: Services, where: Installation) -> str:
    return (await services.run(where.node, service.read(where.home, ROLE))).stdout


async def _install(services: Services, plan: Plan, head: _Site, deployment: str, desired: Desired) -> StandbyInstall:
    standby = await _standby_site(services, head)
    tree = f"{standby.where.home}/{TREE}"
    known, left = await _role_text(services, head.where), await _role_text(services, standby.where)
    if left and not known:
        # Of an earlier head: its program must not wait for one that it has never seen
        await _remove_from(services, [standby.node])
    gateway = await install_standby_gateway(services, plan, replace(standby.where, state=tree, home=_copy(tree, plan)))
    if not gateway.listens:
        return StandbyInstall(findings=(_not_listening(standby.node, gateway),))
    nodes = _reached(services.cluster, plan, known or left)
    if lost := await _ways(services, head, standby, nodes):
        return StandbyInstall(findings=lost)
    await _write_deployment(services, plan, standby, desired, gateway.url)
    cluster = replace(services.cluster, nodes=tuple(services.cluster.node(name) for name in nodes))
    role = StandbyRole(head.node, head.node, standby.node, cluster, voters_of(services.cluster), tree, url=gateway.url)
    await _start(services, head, role)
    try:
        await _await_votes(services, head, standby, left)
    except NodeError:
        if not known:  # nothing is to depend on votes that never came
            await _remove_from(services, [head.node])
        raise
    programs, words = _programs(left, gateway), standby.where.argv("run")[:-1]
    await _start(services, standby, replace(role, node=standby.node, programs=programs, supervisor=words))
    await run_or_raise(services, head.node, commands.note_second(deployment, gateway.url))
    await apply_notify(services, standby.node)
    alone = (TWO_NODES.on(standby.node, f"votes: {', '.join(role.voters)}"),) if len(role.voters) == 1 else ()
    return StandbyInstall(gateway.url, alone)


def _not_listening(node: str, gateway: GatewayInstall) -> Finding:
    if gateway.findings:
        return NO_STANDBY.on(node, "; ".join(f"{one.title} ({one.evidence})" for one in gateway.findings))
    fix = f"write `fabric: {{address: ...}}` of {node} into the cluster file, then the same `sparkwright up` again"
    return NO_STANDBY.on(node, "expose: fabric, and the node's fabric address is not in the cluster file", fix=fix)


def _copy(tree: str, plan: Plan) -> str:
    return f"{tree}/supervision/{plan.deployment}"


async def _standby_site(services: Services, head: _Site) -> _Site:
    """Raises CommandFailed if no program of ours can run there."""
    name = services.cluster.standby
    host = await service_host_of(services, name)
    if not host.python:
        raise CommandFailed(name, f"no Python >= 3.11 there {host.seen and f'({host.seen})'}", "install python3")
    _, runtime = await unpacked(services, name, host)
    manager, _ = await manager_of(services, name, host)
    where = Installation(name, f"{host.state}/supervision/{FOLDER}", host.state, host.python, runtime)
    return _Site(where, (manager, host))


def _reached(cluster: Cluster, plan: Plan, known: str) -> tuple[str, ...]:
    """Names of the nodes that both reach: voters, and nodes with ranks of a deployment, also of those before.

    Always in the same order, whichever replica's `up` this is. known: the role as it was, '' if it is new.
    """
    try:
        before = from_json(StandbyRole, known).cluster.names if known else ()
    except Unreadable:
        before = ()
    wanted = {*voters_of(cluster), cluster.supervisor_node, cluster.standby, *plan.placement.nodes, *before}
    return tuple(sorted(wanted.intersection(cluster.names)))


async def _ways(services: Services, head: _Site, standby: _Site, wanted: Sequence[str]) -> tuple[Finding, ...]:
    """Each of the two reaches the other and those nodes by ssh, with a key of its own."""
    cluster, tag = services.cluster, supervisor_tag(services, FOLDER)
    for site in (head, standby):
        others = [name for name in wanted if name != site.node and not _is_same_machine(cluster, name, site.node)]
        if others and (lost := await open_ways(services, site.where, site.host, others, tag)):
            evidence = "; ".join(f"{one.title}: {one.evidence}" for one in lost)
            return (NO_STANDBY.on(site.node, evidence),)
    return ()


def _is_same_machine(cluster: Cluster, one: str, other: str) -> bool:
    return cluster.node(one).is_local and cluster.node(other).is_local


async def _write_deployment(services: Services, plan: Plan, standby: _Site, desired: Desired, url: str) -> None:
    """All that a supervisor there is started with, or the mark of a deployment that cannot do without the head."""
    node, home = standby.node, _copy(f"{standby.where.home}/{TREE}", plan)
    names = (plan.recipe.serving.api_key_env, *SECRETS)
    secrets = {name: services.secrets[name].reveal() for name in names if name in services.secrets}
    needed = ", ".join(plan.placement.nodes) if plan.supervisor_node in plan.placement.nodes else ""
    await run_or_raise(services, node, service.write(home, "secrets.json", json.dumps(secrets).encode()))
    await run_or_raise(services, node, service.write(f"{home}/door", ENDPOINT, f"{url}\n".encode()))
    await run_or_raise(services, node, commands.mark_folder(home, NEEDS_HEAD, needed))
    runtime = f"{standby.where.runtime.rpartition('/')[2]}\n".encode()
    await run_or_raise(services, node, service.write(home, "runtime", runtime))
    content = to_json(replace(desired, cluster=_seen_from(services.cluster, plan, node))).encode()
    await run_or_raise(services, node, service.write(home, "desired.json", content))


def _seen_from(cluster: Cluster, plan: Plan, site: str) -> Cluster:
    """The deployment's nodes and the standby, as the standby reaches them: itself local, the others by the role's ssh
    settings."""
    nodes = tuple(
        replace(node, ssh="local" if _is_here(cluster, node.name, site) else node.name)
        for node in plan.cluster.nodes
        if node.name in (*plan.placement.nodes, site)
    )
    away = site if plan.head != site else ""
    return replace(plan.cluster, nodes=nodes, head=plan.head, supervised_on=away, notify=None, standby="")


def _programs(known: str, gateway: GatewayInstall) -> tuple[Service, ...]:
    """The programs of this gateway, and those of others that the role had."""
    try:
        before = from_json(StandbyRole, known).programs if known else ()
    except Unreadable:
        before = ()
    return (*(one for one in before if one.cwd != gateway.services[0].cwd), *gateway.services)


async def _start(services: Services, site: _Site, role: StandbyRole) -> None:
    nodes = tuple(
        replace(node, ssh="local" if _is_here(services.cluster, node.name, site.node) else node.name)
        for node in role.cluster.nodes
    )
    cluster = replace(services.cluster, nodes=nodes, head=role.head, supervised_on="", notify=None)
    content = to_json(replace(role, cluster=cluster)).encode()
    await run_or_raise(services, site.node, service.write(site.where.home, ROLE, content))
    # Another role is another environment, and so another unit: its program is started again
    mark = (("SPARKWRIGHT_ROLE", sha256(content).hexdigest()[:16]),)
    program = Service("standby", site.where.argv("standby"), env=mark, watchdog=True)
    await keep_running(services, site.where, FOLDER, (program,), site.kept)


def _is_here(cluster: Cluster, name: str, site: str) -> bool:
    return name == site or _is_same_machine(cluster, name, site)


async def _await_votes(services: Services, head: _Site, standby: _Site, known: str) -> None:
    """Returns once the head has its votes. Raises CommandFailed.

    known: the role as the standby had it, '' if it is new there.
    """
    services.sink.report(StepStarted(_STEP, f"votes for the gateway of {head.node}"))
    for give_back in (True, False):
        done = await services.run(head.node, commands.await_votes(head.where.home, 4.0 if give_back else 4 * TERM))
        if done.ok:
            return
        if give_back and known:
            await run_or_raise(services, standby.node, commands.give_back(standby.where.home))
    said = done.stdout.strip()[-300:]
    hint = f"its log: {head.where.home}/log on {head.node}"
    raise CommandFailed(head.node, f"its gateway has not got the votes of most nodes: {said}", hint)
