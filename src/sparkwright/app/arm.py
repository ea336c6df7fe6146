"""Supervision set up on the head node, so that whoever called may go away."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from sparkwright.app.disarm import did, disarm, pause, tag_of, taken_down
from sparkwright.app.gateway import GatewayInstall, Reach, install_gateway, settled
from sparkwright.app.head_ssh import open_ways
from sparkwright.app.lease import holding
from sparkwright.app.tasks import finished
from sparkwright.app.world import Wish, World
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.errors import Busy, CommandFailed, NodeError, NotReady
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding
from sparkwright.domain.live import Desired
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Notice, StepDone, StepStarted
from sparkwright.domain.service import Manager, Seat, Service, Where
from sparkwright.emit.systemd import unit_name, unit_text
from sparkwright.facts.ranks import ranks_fact
from sparkwright.facts.service import parse_seat
from sparkwright.remote import request, service
from sparkwright.supervision.findings import (
    did_not_start,
    no_gateway,
    no_python,
    nobody_after_a_reboot,
    not_now,
    not_set_up,
)

_SECRETS = ("HF_TOKEN",)
_STEP = "supervise"
# Somebody else's start of ranks is over by then; not one that copies weights.
_WAIT, _AGAIN = 60.0, 1.0
_RECENT = 600.0


@dataclass(frozen=True, slots=True)
class Armed:
    """How it is supervised. node: '' when it is not; findings say why, or what to know of it. said: for the user.

    reach: how clients come to its gateway, None without one.
    """

    node: str = ""
    manager: Manager = Manager.NONE
    findings: tuple[Finding, ...] = ()
    said: tuple[str, ...] = ()
    reach: Reach | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What a supervisor is to know beside plan and wish. fresh: the ranks were started just now.

    figures: of that start: `available:NODE` bytes before it, `started in` seconds. replaces: another deployment, whose
    gateway on port `gateway` (0: none) answers until this one's does.
    """

    allow_reboot: bool = False
    fresh: bool = False
    figures: Mapping[str, float] = field(default_factory=dict)
    replaces: str = ""
    gateway: int = 0


async def record(world: World, wish: Wish, plan: Plan) -> None:
    """What was started, on the head, where no supervisor knows it: a way back for the next `up`, and for `restart`."""
    content = to_json(_desired(world, wish, plan, Order()))
    await did(world, plan.head, request.record(world.cluster.node(plan.head).paths.state, plan.deployment, content))


async def arm(world: World, wish: Wish, plan: Plan, order: Order) -> Armed:
    """Idempotent: what is as it should be is not restarted. What goes wrong is a finding: it serves all the same.

    Raises NotReady when it was taken down meanwhile: a supervisor would bring it back.
    """
    began = world.clock.monotonic()
    world.sink.tell(StepStarted(_STEP, f"on {plan.head}"))
    try:
        async with _alone(world, plan):
            await _there(world, plan)
            armed = await finished(_arm(world, wish, plan, order))
    except Busy as busy:
        armed = Armed(findings=(not_now(plan.head, busy.message),))
    except NodeError as error:
        armed = Armed(findings=(not_set_up(plan.head, error.message),))
    except asyncio.CancelledError:
        text = f"interrupted: {plan.deployment} serves; the same `sparkwright up` again says how to reach it"
        world.sink.tell(Notice(text, warning=True))
        raise
    world.sink.tell(StepDone(_STEP, world.clock.monotonic() - began))
    return armed


@asynccontextmanager
async def _alone(world: World, plan: Plan) -> AsyncIterator[None]:
    """Under the leases, after a short wait: a `down` beside this would leave units that it never saw. Raises Busy."""
    nodes, why = list(dict.fromkeys(plan.placement.nodes)), f"up {plan.deployment}: supervise"
    until, told = world.clock.monotonic() + _WAIT, False
    async with AsyncExitStack() as stack:
        while True:
            try:
                await stack.enter_async_context(holding(world, nodes, why))
                break
            except Busy as busy:
                if world.clock.monotonic() > until:
                    raise
                if not told:
                    world.sink.tell(Notice(f"waiting, for {_WAIT:.0f} s at most: {busy.message}"))
                told = True
                await world.clock.sleep(_AGAIN)
        yield


async def _there(world: World, plan: Plan) -> None:
    """Rank 0 is still the plan's, running or ended. Where that cannot be told, it counts as such."""
    fact = ranks_fact(world.cluster.node(plan.head))
    found = fact.read(await world.hosts[plan.head].run(fact.command))
    mine = {spec.labels["spec-hash"] for spec in plan.specs}
    if isinstance(found, Unknown) or any(r.deployment == plan.deployment and r.spec_hash in mine for r in found):
        return
    who = await taken_down(world, plan.head, plan.deployment, _RECENT)
    by = f"taken down by {who}" if who else "replaced by somebody else"
    raise NotReady(
        f"{plan.deployment}: {by} before it could be supervised",
        "`sparkwright status` shows what runs; the same `sparkwright up` again brings it back",
    )


async def _arm(world: World, wish: Wish, plan: Plan, order: Order) -> Armed:
    seat = await _seat(world, plan)
    if not seat.python:
        return Armed(findings=(no_python(plan.head, seat),))
    where = await _brought(world, plan, seat)
    workers = _remote_workers(plan)
    lost = await open_ways(world, where, seat, workers, tag_of(world, plan.deployment)) if workers else ()
    if lost:
        return Armed(findings=lost)
    await _ordered(world, where, _desired(world, wish, plan, order), order)
    manager, doubts = await _manager(world, plan.head, seat)
    gateway = await _gateway(world, plan, where, order.gateway)
    supervisor = Service("supervisor", where.argv("run"), private=False)
    await _serve(world, where, plan.deployment, (supervisor, *gateway.before), (manager, seat))
    if order.replaces:
        await disarm(world, world.cluster.names, order.replaces)
    await _serve(world, where, plan.deployment, gateway.after, (manager, seat))
    reach, more = await _settled(world, plan, where) if gateway.listens else (None, ())
    reach = replace(reach, key=gateway.key) if reach else None
    done = await world.hosts[plan.head].run(service.alive(where.home))
    if not done.ok:
        doubts = (*doubts, did_not_start(plan.head, " / ".join(done.stdout.split("\n"))[-600:]))
    return Armed(plan.head if done.ok else "", manager, (*doubts, *gateway.findings), (*gateway.said, *more), reach)


async def _gateway(world: World, plan: Plan, where: Where, handed: int) -> GatewayInstall:
    """A supervisor without a gateway is better than none."""
    try:
        return await install_gateway(world, plan, where, handed)
    except NodeError as error:
        return GatewayInstall((), (no_gateway(plan.head, error.message),))


async def _settled(world: World, plan: Plan, where: Where) -> tuple[Reach | None, tuple[str, ...]]:
    try:
        return await settled(world, plan, where)
    except NodeError as error:
        return None, (f"the gateway could not be asked: {error.message}",)


async def _seat(world: World, plan: Plan) -> Seat:
    """Raises CommandFailed."""
    node = world.cluster.node(plan.head)
    more = (world.python,) if node.is_local else ()
    seat = parse_seat(await world.hosts[plan.head].run(service.seat(node.paths.state, more)))
    if isinstance(seat, Unknown):
        raise CommandFailed(plan.head, f"what it has for services: {seat.why} {seat.raw}")
    return seat


async def _brought(world: World, plan: Plan, seat: Seat) -> Where:
    """The program is there afterwards."""
    assert world.program, "a world that supervises has the program for it"
    digest = world.program.digest
    if digest not in seat.runtimes:
        await did(world, plan.head, service.unpack(seat.state, digest, world.program.archive()))
    home = f"{seat.state}/supervision/{plan.deployment}"
    return Where(plan.head, home, seat.state, seat.python, f"{seat.state}/runtime/{digest}")


def _remote_workers(plan: Plan) -> tuple[str, ...]:
    """Nodes that are this very machine are that for a supervisor on it, too."""
    head_local = plan.cluster.node(plan.head).is_local
    workers = dict.fromkeys(name for name in plan.placement.nodes if name != plan.head)
    return tuple(name for name in workers if not (head_local and plan.cluster.node(name).is_local))


def _desired(world: World, wish: Wish, plan: Plan, order: Order) -> Desired:
    speeds = {"prefill_tokens_s": plan.speeds[0].prefill.value} if plan.speeds else {}
    return Desired(
        deployment=plan.deployment,
        cluster=_as_seen_there(plan),
        recipe=wish.recipe,
        force=wish.force,
        by=world.who,
        at=world.clock.now(),
        allow_reboot=order.allow_reboot,
        time_scale=world.time_scale,
        python=world.python_on(world.cluster.node(plan.head)),
        speeds=speeds,
    )


def _as_seen_there(plan: Plan) -> Cluster:
    """The head's own cluster file: itself local, the others by the names in its ssh configuration."""
    remote = _remote_workers(plan)
    nodes = tuple(
        replace(node, ssh=node.name if node.name in remote else "local")
        for node in plan.cluster.nodes
        if node.name in plan.placement.nodes
    )
    return replace(plan.cluster, nodes=nodes, head=plan.head)


async def _ordered(world: World, where: Where, desired: Desired, order: Order) -> None:
    """Desired state and secrets on the head. One that says the same but for who called and when stays as it is."""
    host, fresh = world.hosts[where.node], order.fresh
    names = (desired.recipe.serving.api_key_env, *_SECRETS)
    secrets = {name: world.secrets[name].reveal() for name in names if name in world.secrets}
    content = json.dumps(secrets).encode()
    known = (await host.run(service.read(where.home, "desired.json"))).stdout
    same_secrets = (await host.run(service.read(where.home, "secrets.json"))).stdout.encode() == content
    if _same(known, desired) and same_secrets and not fresh:
        return
    await pause(world, (where.node,), desired.deployment)
    await did(world, where.node, service.write(where.home, "secrets.json", content))
    await did(world, where.node, service.write(where.home, "desired.json", to_json(desired).encode(), fresh))
    if fresh:
        figures = json.dumps(dict(order.figures)).encode()
        await did(world, where.node, service.write(where.home, "figures.json", figures))


def _same(known: str, desired: Desired) -> bool:
    """Whoever called, whenever, and whatever this start has taught about speeds since."""
    try:
        before = from_json(Desired, known)
    except Unreadable:
        return False
    told = replace(desired, by=before.by, at=before.at, speeds=before.speeds)
    return before == from_json(Desired, to_json(told))


async def _manager(world: World, node: str, seat: Seat) -> tuple[Manager, tuple[Finding, ...]]:
    if seat.manager is Manager.USER and not seat.lingers:
        done = await world.hosts[node].run(service.enable_linger(seat.state))
        if not done.ok:
            why = f"linger cannot be enabled for {seat.user}: {done.stderr.strip()[-200:]}"
            return Manager.NONE, (nobody_after_a_reboot(node, why),)
    if seat.manager is Manager.NONE:
        why = seat.why or "systemd runs there, but not for this user, and sudo wants a password"
        return Manager.NONE, (nobody_after_a_reboot(node, why),)
    return seat.manager, ()


async def _serve(
    world: World, where: Where, deployment: str, services: Sequence[Service], kept: tuple[Manager, Seat]
) -> None:
    """Ranks that the supervisor starts on its own node must find what those find that `up` starts there over ssh."""
    manager, seat = kept
    env = (*seat.env, *world.cluster.node(where.node).env)
    await did(world, where.node, service.write(where.home, "runtime", f"{where.runtime.rpartition('/')[2]}\n".encode()))
    for one in (replace(bare, env=(*env, *bare.env)) for bare in services):
        if manager is Manager.NONE:
            command = service.detach(one, where.home, repr(one))
        else:
            text = unit_text(one, deployment, where.home, manager, seat.user)
            command = service.install(manager, unit_name(one, deployment), text)
        await did(world, where.node, command)
