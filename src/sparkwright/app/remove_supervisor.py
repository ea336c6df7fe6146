"""Supervision taken away, or made to wait: a deployment has one master at a time, and a person goes first."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime

from sparkwright.app.lease import Leases, holding
from sparkwright.app.services import Services
from sparkwright.app.tasks import each, finished, together
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Busy, CommandFailed, NodeError
from sparkwright.remote import lease, service

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_TAKEN = re.compile(rf"(?P<at>{_TIME}) (?P<who>[^\n]{{1,100}}?) disarm [^ \n]+: down\nnow (?P<now>{_TIME})", re.ASCII)


def tag_of(services: Services, deployment: str) -> str:
    """What marks a supervisor's key on the workers: `sparkwright:CLUSTER/DEPLOYMENT`."""
    return f"sparkwright:{re.sub(r'[^A-Za-z0-9._-]', '-', services.cluster.name)}/{deployment}"


async def remove_supervisor(
    services: Services, nodes: Sequence[str], deployment: str, why: str = ""
) -> tuple[str, ...]:
    """Takes away all that there is of its supervision, also half of it. The nodes that had some. Raises NodeError.

    why: for the audit log.
    """

    async def one(name: str) -> str:
        state, tag = services.cluster.node(name).paths.state, tag_of(services, deployment)
        done = await did(services, name, service.remove(state, deployment, tag, why))
        return name if "was" in done.stdout.split() else ""

    return tuple(filter(None, await each(finished(one(name)) for name in nodes)))


@asynccontextmanager
async def taking_over(
    services: Services, nodes: Sequence[str], deployment: str, why: str, seize: bool
) -> AsyncIterator[Leases]:
    """As `holding`; a supervisor of this deployment that holds a lease gives way, and goes on if that was in vain."""
    async with AsyncExitStack() as stack:
        try:
            held = await stack.enter_async_context(holding(services, nodes, why, seize))
        except Busy:
            paused = await finished(pause(services, nodes, deployment)) if services.program else ()
            if not paused:
                raise
            stack.push_async_callback(_resume, services, paused, deployment)
            held = await stack.enter_async_context(holding(services, nodes, why, seize))
        yield held


async def pause(services: Services, nodes: Sequence[str], deployment: str) -> tuple[str, ...]:
    """Ends the supervisor, and with it what it was about; its leases are free then. The nodes where one ran."""

    async def one(name: str) -> str:
        done = await services.hosts[name].run(service.pause(services.cluster.node(name).paths.state, deployment))
        words = done.stdout.split()
        if done.ok and "nonce" in words[:-1]:
            await together(_freed(services, node, words[-1]) for node in nodes)
        return name if done.ok and "was" in words else ""

    return tuple(filter(None, await each(one(name) for name in nodes)))


async def _freed(services: Services, node: str, nonce: str) -> None:
    with suppress(NodeError):
        await services.hosts[node].run(lease.release(nonce))


async def _resume(services: Services, nodes: Sequence[str], deployment: str) -> None:
    """Where it is still there: `disarm` has taken it away when something else was begun."""
    for name in nodes:
        with suppress(NodeError):
            state = services.cluster.node(name).paths.state
            await finished(did(services, name, service.resume(state, deployment)))


async def taken_down(services: Services, node: str, deployment: str, within: float) -> str:
    """By whom and when a `down` has ended it in the last seconds, as the node's audit log has it; '' where none has."""
    with suppress(NodeError):
        told = await services.hosts[node].run(service.taken_down(services.cluster.node(node).paths.state, deployment))
        return _taken(told.stdout, within)
    return ""


def _taken(told: str, within: float) -> str:
    found = _TAKEN.fullmatch(told.strip())
    if not found:
        return ""
    try:
        at, now = (datetime.fromisoformat(found[name]) for name in ("at", "now"))
    except ValueError:
        return ""
    if not -within <= (now - at).total_seconds() <= within:
        return ""
    who = "".join(c for c in found["who"] if c.isprintable())
    return f"{who} at {at:%H:%M:%S} UTC"


async def did(services: Services, node: str, command: Command) -> Completed:
    """Raises CommandFailed."""
    done = await services.hosts[node].run(command)
    if not done.ok:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise CommandFailed(node, f"{command.changes}: exit {done.exit_code}: {said}")
    return done
