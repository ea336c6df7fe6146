"""A planned restart: by the supervisor where there is one, else from here."""

import asyncio

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import taking_over
from sparkwright.app.serve.launch import restore_previous
from sparkwright.app.serve.running import Old, find_running, missing, require_its_nodes, state_of, until_serving
from sparkwright.app.services import LaunchRequest, Services, api_key
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.errors import Busy, CommandFailed, NotReady, UsageError
from sparkwright.domain.live import Ask, DeploymentState, Request, Supervised
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.units import DRAIN_SECONDS, duration
from sparkwright.domain.values import replace
from sparkwright.remote import service

_GRACE = 30.0
_TRIES = 3  # of 5 s each


async def restart(services: Services, name: str, drain: float = DRAIN_SECONDS) -> float:
    """Seconds until it served again. drain: seconds that requests under way get.

    Raises UsageError, NotReady, Busy; NodeError also if it serves and one of its nodes cannot be asked.
    """
    old = await find_running(services, name)
    if old is None:
        raise await missing(services, name)
    await require_its_nodes(services, old)
    began = services.clock.monotonic()
    services.sink.report(StepStarted("restart", name))
    await (_asked(services, old.supervised, drain) if old.supervised else _from_here(services, old))
    services.sink.report(StepDone("restart", services.clock.monotonic() - began))
    return services.clock.monotonic() - began


async def halt_deployment(services: Services, name: str) -> float:
    """Seconds until its ranks were gone; supervisor and gateway stay, and `restart` starts it again.

    Raises UsageError, NotReady, NodeError.
    """
    old = await find_running(services, name)
    if old is None:
        raise await missing(services, name)
    await require_its_nodes(services, old)
    if old.supervised is None:
        raise UsageError(f"{name} has no supervisor that could start it again", f"`sparkwright down {name}` stops it")
    began = services.clock.monotonic()
    node = await _ask(services, old.supervised, Ask.HALT, "stopped by an operator")
    if why := await until_serving(services, node, name, services.nonce, (DeploymentState.HALTED,)):
        raise NotReady(f"{name} is not stopped: {why}", f"`sparkwright status {name}`")
    return services.clock.monotonic() - began


async def _asked(services: Services, supervised: Supervised, drain: float) -> None:
    """Cancellation leaves the restart running and says so."""
    name = supervised.deployment
    node = await _ask(services, supervised, Ask.RESTART, "a planned restart", drain)
    try:
        why = await until_serving(services, node, name, services.nonce)
    except asyncio.CancelledError:
        text = f"interrupted: the restart of {name} goes on; `sparkwright status {name}` shows it"
        services.notice(text, warning=True)
        raise
    if why := await until_serving(services, node, name, services.nonce):
        raise NotReady(f"{name} does not serve after the restart: {why}", f"`sparkwright incidents list {name}`")


async def _ask(services: Services, supervised: Supervised, ask: Ask, why: str, drain: float = DRAIN_SECONDS) -> str:
    """The supervisor's node. Raises Busy if another request is in the way, CommandFailed."""
    node, name = supervised.node, supervised.deployment
    state = state_of(services, supervised)
    content = to_json(Request(ask, services.who, why, services.nonce, drain=drain))
    for _ in range(_TRIES):
        done = await services.run(node, service.send_request(state, name, content, str(ask)))
        other = _request(done.stdout) if done.exit_code == service.OCCUPIED else None
        if other is not None and other.ask is Ask.REPLACE:
            break
        await services.run(node, service.resume(state, name))  # it may be down: the request before ours waits, too
        if done.exit_code != service.OCCUPIED:
            break
    if done.exit_code == service.OCCUPIED:
        raise _occupied(node, name, done.stdout)
    if not done.ok:
        raise CommandFailed(node, f"the supervisor of {name} could not be asked: {done.stderr.strip()[:200]}")
    return node


def _request(told: str) -> Request | None:
    """The request that is in the way, with its age."""
    age, _, text = told.partition("\n")
    try:
        return replace(from_json(Request, text), age=float(age) if age.strip().isdigit() else 0.0)
    except Unreadable:
        return None


def _occupied(node: str, name: str, told: str) -> Busy:
    request = _request(told)
    if request is None:
        return Busy(f"{node}: the supervisor of {name} has another request that cannot be read", "try again")
    if request.ask is Ask.REPLACE:
        said = f"{name} is {request.why}, asked for by {request.by}"
        return Busy(said, f"`sparkwright status` shows what serves; repeat it once {request.by} is done")
    said = f"the supervisor of {name} has not taken up the {request.ask} that {request.by} asked for"
    return Busy(f"{said} {duration(request.age)} ago", f"`sparkwright status {name}`")


async def _from_here(services: Services, old: Old) -> None:
    if old.desired is None:
        said = f"what {old.name} was started from is not recorded, and no supervisor knows it"
        raise UsageError(said, f"`sparkwright down {old.name}`, then `sparkwright up` with its recipe")
    recipe = old.desired.recipe
    launch_request = LaunchRequest(recipe, old.name, old.desired.force, api_key(services, recipe))
    nodes = list(dict.fromkeys(rank.node for rank in old.ranks))
    async with taking_over(services, nodes, old.name, f"restart {old.name}", False):
        await rank_work.stop_all(services, old.ranks, _GRACE, remove=True)
    await restore_previous(services, launch_request, True)
