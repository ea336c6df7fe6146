"""The gateway, inspected now and then: a certificate expires while it serves, a keys file gets damaged, and an
engine whose gateway does not answer serves nobody."""

from sparkwright.app.gateway import ENDPOINT, findings
from sparkwright.checks.gateway import KEYS, MODES, PAIR
from sparkwright.domain.errors import NodeError
from sparkwright.domain.recipe import GatewayTls
from sparkwright.domain.service import Installation
from sparkwright.facts.service import parse_programs
from sparkwright.gateway.caddy import ADMIN
from sparkwright.remote import gateway as commands
from sparkwright.remote import service
from sparkwright.supervisor.announcer import note_restart
from sparkwright.supervisor.context import LOOPBACK, DeploymentContext
from sparkwright.supervisor.event_bus import EventBus

_EVERY, _AGAIN = 3600.0, 60.0
# Twice in vain: Caddy restarts within a second, and so does the service behind it.
_PROBE_EVERY, _IN_VAIN = 15.0, 2
# Its answer to a request without a key, whatever the engine does meanwhile.
_NO_KEY = 401
AWAY = "door-away"
_WATCHED = (PAIR, KEYS, MODES)
_PROGRAMS_EVERY, _LEAST = 5.0, 1.0
_FLIGHTS_EVERY = 1.0
_PROCESS = "process:"
# By their services' names.
PROGRAMS = {"caddy": "gateway (Caddy)", "door": "key check"}


async def watch(bus: EventBus) -> None:
    """The findings of `up` again, hourly. Nothing is stopped for them, and they are over once they are fixed."""
    while True:
        await look(bus)
        wrong = any(code in bus.lasting for code in _WATCHED)
        await bus.context.pause(_AGAIN if wrong else _EVERY)


async def look(bus: EventBus) -> None:
    context = bus.context
    try:
        found = {one.code: one for one in await findings(context.services, context.outline, _where(context))}
    except NodeError as error:
        context.notice(f"the gateway's files cannot be inspected: {error.message}", warning=True)
        return
    for code in _WATCHED:
        one = found.get(code)
        bus.set_trouble(code, f"gateway: {one.title} ({code}; {one.evidence}); {one.remedy}" if one else "")


async def probe(bus: EventBus) -> None:
    """A trouble while clients find nobody at the gateway. Where none was made nothing is probed."""
    context, vain = bus.context, 0
    while True:
        await context.pause(_PROBE_EVERY)
        said = await context.services.endpoint.probe(f"{_root(context)}/v1/models")
        vain = 0 if said == _NO_KEY or not await _made(context) else vain + 1
        bus.set_trouble(AWAY, _away(context, said) if vain >= _IN_VAIN else "")


async def _made(context: DeploymentContext) -> bool:
    """Whether `up` has made a gateway; one that answers needs no such look."""
    try:
        read = service.read(f"{_where(context).home}/door", ENDPOINT)
        return bool((await context.services.run(context.head, read)).stdout.strip())
    except NodeError:
        return False


async def in_flight(bus: EventBus) -> None:
    """Requests that the engine got, whatever it reports: one that hangs shows its last figures."""
    context = bus.context
    socket = f"{_where(context).home}/door/{ADMIN}"
    while True:
        flights = await context.services.endpoint.in_flight(socket)
        bus.put(*bus.detectors.gateway(flights, context.now()))
        await context.pause(_FLIGHTS_EVERY / 2 if flights else _FLIGHTS_EVERY)


async def programs(bus: EventBus) -> None:
    """Restarts of the gateway's own programs: clients had no answer for a moment, and systemd reports none of it."""
    context = bus.context
    while True:
        await restarted(context)
        await context.services.clock.sleep(max(context.scaled(_PROGRAMS_EVERY), _LEAST))


async def restarted(context: DeploymentContext) -> None:
    """Noted when a program is another process than at the look before, also at that of another supervisor."""
    try:
        asked = commands.programs(_where(context).home, context.name, tuple(PROGRAMS))
        found = parse_programs(await context.services.run(context.head, asked))
    except NodeError:
        return
    for name, pid in found.items():
        before = int(context.journal.recall().get(f"{_PROCESS}{name}", 0.0))
        if pid != before:
            context.remember({f"{_PROCESS}{name}": float(pid)})
        if before and pid != before:
            await note_restart(context, PROGRAMS[name], f"process {before} is {pid} now")


def _away(context: DeploymentContext, said: int) -> str:
    how = f"answers {said} instead of asking for a key" if said else "does not answer"
    return (
        f"the gateway {how} ({_root(context)}): clients do not reach the engine; its programs are the services "
        f"sparkwright-caddy-{context.name} and sparkwright-door-{context.name} on {context.head}, the same "
        "`sparkwright up` sets it up again"
    )


def _root(context: DeploymentContext) -> str:
    gateway = context.desired.recipe.serving.door
    return f"{'http' if gateway.tls is GatewayTls.OFF else 'https'}://{LOOPBACK}:{gateway.port}"


def _where(context: DeploymentContext) -> Installation:
    state = context.services.cluster.node(context.head).paths.state
    return Installation(context.head, f"{state}/supervision/{context.name}", state, "", "")
