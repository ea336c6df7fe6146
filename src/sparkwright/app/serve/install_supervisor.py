"""Supervision set up on the head node, so that the caller may go away."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from sparkwright.app.lease import holding, pause_supervisor, remove_supervisor, run_or_raise, supervisor_tag, taken_down
from sparkwright.app.serve.gateway import GatewayInstall, GatewayReach, install_gateway, settled
from sparkwright.app.serve.head_program import keep_running, manager_of, service_host_of, unpacked
from sparkwright.app.serve.head_ssh import open_ways
from sparkwright.app.serve.notify import apply_notify, missing_text
from sparkwright.app.serve.standby import SECRETS, StandbyInstall, install_standby, succeed_lost_head
from sparkwright.app.services import LaunchRequest, Services, finished
from sparkwright.checks import supervision as sup
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import Busy, NodeError, NotReady
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding
from sparkwright.domain.live import Desired
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.service import Installation, Manager, Service
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.facts.ranks import ranks_fact
from sparkwright.remote import service

_STEP = "supervise"
# Somebody else's start of ranks is over by then; not one that copies weights.
_WAIT, _AGAIN = 60.0, 1.0
_RECENT = 600.0


@dataclass(frozen=True, slots=True)
class InstallResult:
    """The result of installing supervision. node: '' if nothing supervises; findings: the reason, or notes about it.

    reach: how clients come to its gateway, None without one.
    """

    node: str = ""
    manager: Manager = Manager.NONE
    findings: tuple[Finding, ...] = ()
    said: tuple[str, ...] = ()  # lines for the user
    reach: GatewayReach | None = None


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """Information for a supervisor besides plan and request. fresh: the ranks were started just now.

    figures: of that start: `available:NODE` bytes before it, `started in` seconds. replaces: another deployment, whose
    supervisor keeps the gateway's answers until this one's does.
    """

    allow_reboot: bool = False
    fresh: bool = False
    figures: Mapping[str, float] = field(default_factory=dict)
    replaces: str = ""


async def record(services: Services, launch_request: LaunchRequest, plan: Plan) -> None:
    """Records the started plan on the head, unsupervised, so that the next `up` and `restart` find it."""
    content = to_json(_desired(services, launch_request, plan, InstallOptions()))
    await run_or_raise(
        services,
        plan.supervisor_node,
        service.record_desired(services.state_on(plan.supervisor_node), plan.deployment, content),
    )


async def install_supervisor(
    services: Services, launch_request: LaunchRequest, plan: Plan, options: InstallOptions
) -> InstallResult:
    """Idempotent: what is as it should be is not restarted. What goes wrong is a finding: it serves all the same.

    Raises NotReady when it was taken down meanwhile: a supervisor would start it again.
    """
    began = services.clock.monotonic()
    services.sink.report(StepStarted(_STEP, f"on {plan.supervisor_node}"))
    try:
        async with _alone(services, plan):
            await _there(services, plan)
            await succeed_lost_head(services)  # first: it takes a program away with the role
            armed = await finished(_arm(services, launch_request, plan, options))
    except Busy as busy:
        armed = InstallResult(findings=(sup.LOCKED.on(plan.supervisor_node, busy.message),))
    except NodeError as error:
        armed = InstallResult(findings=(sup.NOT_INSTALLED.on(plan.supervisor_node, error.message),))
    except asyncio.CancelledError:
        text = f"interrupted: {plan.deployment} serves; the same `sparkwright up` again prints how to reach it"
        services.notice(text, warning=True)
        raise
    services.sink.report(StepDone(_STEP, services.clock.monotonic() - began))
    return armed


@asynccontextmanager
async def _alone(services: Services, plan: Plan) -> AsyncIterator[None]:
    """Holds the leases, after a short wait: a concurrent `down` would miss the new units. Raises Busy."""
    nodes, why = list(dict.fromkeys(plan.placement.nodes)), f"up {plan.deployment}: supervise"
    until, told = services.clock.monotonic() + _WAIT, False
    async with AsyncExitStack() as stack:
        while True:
            try:
                await stack.enter_async_context(holding(services, nodes, why))
                break
            except Busy as busy:
                if services.clock.monotonic() > until:
                    raise
                if not told:
                    services.notice(f"waiting, for {_WAIT:.0f} s at most: {busy.message}")
                told = True
                await services.clock.sleep(_AGAIN)
        yield


async def _there(services: Services, plan: Plan) -> None:
    """Rank 0 is still the plan's, running or ended. Where that is not known, it counts as such."""
    found = await services.read(plan.head, ranks_fact(services.cluster.node(plan.head)))
    mine = {spec.labels["spec-hash"] for spec in plan.specs}
    if isinstance(found, Unknown) or any(r.deployment == plan.deployment and r.spec_hash in mine for r in found):
        return
    who = await taken_down(services, plan.supervisor_node, plan.deployment, _RECENT)
    by = f"taken down by {who}" if who else "replaced by somebody else"
    hint = "`sparkwright status` shows what runs; the same `sparkwright up` again starts it"
    raise NotReady(f"{plan.deployment}: {by} before it could be supervised", hint)


async def _arm(services: Services, launch_request: LaunchRequest, plan: Plan, options: InstallOptions) -> InstallResult:
    service_host = await service_host_of(services, plan.supervisor_node)
    if not service_host.python:
        seen = f"there is {service_host.seen}" if service_host.seen else "there is none on the PATH"
        return InstallResult(findings=(sup.NO_PYTHON.on(plan.supervisor_node, seen),))
    digest, runtime = await unpacked(services, plan.supervisor_node, service_host)
    state = service_host.state
    home = f"{state}/supervision/{plan.deployment}"
    before = (await services.run(plan.supervisor_node, service.read(home, "runtime"))).stdout.strip()
    where = Installation(plan.supervisor_node, home, state, service_host.python, runtime)
    workers = _remote_workers(plan)
    if workers:
        services.sink.report(StepStarted(_STEP, f"ssh from {plan.supervisor_node} to {', '.join(workers)}"))
    lost = (
        await open_ways(services, where, service_host, workers, supervisor_tag(services, plan.deployment))
        if workers
        else ()
    )
    if lost:
        return InstallResult(findings=lost)
    desired = _desired(services, launch_request, plan, options)
    await _ordered(services, where, desired, options)
    if (applied := await apply_notify(services, plan.supervisor_node)) and (unset := missing_text(applied)):
        services.notice(unset, warning=True)
    manager, doubts = await manager_of(services, plan.supervisor_node, service_host)
    services.sink.report(StepStarted(_STEP, "gateway: files, keys and certificate"))
    gateway = await _gateway(services, plan, where, options.replaces)
    services.sink.report(StepStarted(_STEP, "supervisor, gateway and console: started where they do not run"))
    supervisor = Service("supervisor", where.argv("run"), private=False, watchdog=True)
    kept = manager, service_host
    await keep_running(services, where, plan.deployment, (supervisor,), kept)
    if gateway.services:
        await keep_running(services, gateway.where, gateway.name, gateway.services, kept)
    if gateway.moved:
        await run_or_raise(services, plan.supervisor_node, service.remove_unused_gateways(state))
    if options.replaces:
        why = f"replaced by {plan.deployment}"
        await remove_supervisor(services, services.cluster.names, options.replaces, why)
    awaited = f"an answer of the gateway on port {plan.recipe.serving.gateway.port}, and " if gateway.listens else ""
    services.sink.report(StepStarted(_STEP, f"waiting for {awaited}the supervisor's report"))
    second = await install_standby(services, plan, where, kept, desired) if gateway.listens else StandbyInstall()
    (reach, more), done = await asyncio.gather(
        _settled(services, plan, where, gateway), services.run(plan.supervisor_node, service.await_alive(where.home))
    )
    if not done.ok:
        doubts = (*doubts, _no_report(plan.supervisor_node, done))
    node, findings = (
        plan.supervisor_node if done.ok else "",
        (*doubts, *gateway.findings, *second.findings, *(reach.findings if reach else ())),
    )
    reach = replace(reach, second=second.url) if reach else None
    said = (*gateway.said, *more, *_replaced(plan.supervisor_node, before, digest))
    return InstallResult(node, manager, findings, said, reach)


def _no_report(head: str, done: Completed) -> Finding:
    evidence = " / ".join(done.stdout.split("\n"))[-600:]
    if done.exit_code != service.SILENT:
        return sup.NOT_RUNNING.on(head, evidence)
    title, cause = "the supervisor has not reported yet", "it still starts: the node is very busy, or the process hangs"
    return sup.NOT_RUNNING.on(
        head, evidence, title=title, cause=cause, fix=f"sparkwright status   # its log: on {head}"
    )


def _replaced(head: str, before: str, digest: str) -> tuple[str, ...]:
    """A line about the program on the head, if it was another one."""
    if before in ("", digest):
        return ()
    what = f"the program on {head} was replaced ({before[:8]} by {digest[:8]})"
    return (f"{what}: supervisor, gateway and console were restarted, the engine was not",)


async def _gateway(services: Services, plan: Plan, where: Installation, replaces: str) -> GatewayInstall:
    """A supervisor without a gateway is better than none."""
    try:
        return await install_gateway(services, plan, where, replaces)
    except NodeError as error:
        return GatewayInstall("", where, (), (sup.NO_GATEWAY.on(plan.supervisor_node, error.message),))


async def _settled(
    services: Services, plan: Plan, where: Installation, gateway: GatewayInstall
) -> tuple[GatewayReach | None, tuple[str, ...]]:
    if not gateway.listens:
        return None, ()
    try:
        reach, more = await settled(services, plan, where, gateway.url)
    except NodeError as error:
        return None, (f"the gateway could not be asked: {error.message}",)
    return replace(reach, key=gateway.key) if reach else None, more


def _remote_workers(plan: Plan) -> tuple[str, ...]:
    """Nodes that are this very machine are that for a supervisor on it, too."""
    head_local = plan.cluster.node(plan.supervisor_node).is_local
    workers = dict.fromkeys(name for name in plan.placement.nodes if name != plan.supervisor_node)
    return tuple(name for name in workers if not (head_local and plan.cluster.node(name).is_local))


def _desired(services: Services, launch_request: LaunchRequest, plan: Plan, options: InstallOptions) -> Desired:
    speeds = {"prefill_tokens_s": plan.speeds[0].prefill.value} if plan.speeds else {}
    # The head's own cluster file: itself local, the others by the names in its ssh configuration
    remote = _remote_workers(plan)
    nodes = tuple(
        replace(node, ssh=node.name if node.name in remote else "local")
        for node in plan.cluster.nodes
        if node.name in (*plan.placement.nodes, plan.supervisor_node)
    )
    return Desired(
        deployment=plan.deployment,
        cluster=replace(plan.cluster, nodes=nodes, head=plan.head, notify=None, standby=""),
        recipe=launch_request.recipe,
        force=launch_request.force,
        by=services.who,
        at=services.clock.now(),
        allow_reboot=options.allow_reboot,
        time_scale=services.time_scale,
        python=services.python_on(services.cluster.node(plan.supervisor_node)),
        speeds=speeds,
        replica=plan.replica,
        fabric=tuple(sorted(choice.address for choice in plan.placement.fabric.values() if choice.address)),
    )


async def _ordered(services: Services, where: Installation, desired: Desired, options: InstallOptions) -> None:
    """Desired state and secrets on the head. One that is the same but for who called and when stays as it is."""
    host, fresh = services.hosts[where.node], options.fresh
    names = (desired.recipe.serving.api_key_env, *SECRETS)
    secrets = {name: services.secrets[name].reveal() for name in names if name in services.secrets}
    content = json.dumps(secrets).encode()
    asked = [service.read(where.home, name) for name in ("desired.json", "secrets.json")]
    known, kept = (done.stdout for done in await host.run_all(asked))
    if _same(known, desired) and kept.encode() == content and not fresh:
        return
    await pause_supervisor(services, (where.node,), desired.deployment)
    await run_or_raise(services, where.node, service.write(where.home, "secrets.json", content))
    await run_or_raise(
        services, where.node, service.write(where.home, "desired.json", to_json(desired).encode(), fresh)
    )
    if fresh:
        figures = json.dumps(dict(options.figures)).encode()
        await run_or_raise(services, where.node, service.write(where.home, "figures.json", figures))


def _same(known: str, desired: Desired) -> bool:
    """True if both are equal apart from the caller, the time, and the speeds learned since."""
    try:
        before = from_json(Desired, known)
    except Unreadable:
        return False
    told = replace(desired, by=before.by, at=before.at, speeds=before.speeds)
    return before == from_json(Desired, to_json(told))
