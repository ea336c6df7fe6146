"""The gateway, looked at now and then: a certificate expires while it serves, a keys file gets damaged, and an
engine whose gateway does not answer serves nobody."""

from sparkwright.app.gateway import ENDPOINT, findings
from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.site import LOOPBACK, Site
from sparkwright.app.supervise.words import note_restart
from sparkwright.checks.gateway import KEYS, MODES, PAIR
from sparkwright.domain.errors import NodeError
from sparkwright.domain.recipe import GatewayTls
from sparkwright.domain.service import Where
from sparkwright.facts.service import parse_programs
from sparkwright.gateway.caddy import ADMIN
from sparkwright.remote import gateway as commands
from sparkwright.remote import service

_EVERY, _AGAIN = 3600.0, 60.0
# Twice in vain: Caddy begins anew within a second, and so does the service behind it.
_PROBE_EVERY, _IN_VAIN = 15.0, 2
# What it says to who has no key, whatever the engine does meanwhile.
_NO_KEY = 401
AWAY = "door-away"
_WATCHED = (PAIR, KEYS, MODES)
_PROGRAMS_EVERY, _LEAST = 5.0, 1.0
_FLIGHTS_EVERY = 1.0
_PROCESS = "process:"
# By their services' names.
PROGRAMS = {"caddy": "gateway (Caddy)", "door": "key check"}


async def watch(senses: Senses) -> None:
    """What `up` told once goes on ageing. Nothing is stopped by it, and it is over as soon as it is mended."""
    while True:
        await look(senses)
        wrong = any(code in senses.standing for code in _WATCHED)
        await senses.site.pause(_AGAIN if wrong else _EVERY)


async def look(senses: Senses) -> None:
    site = senses.site
    try:
        found = {one.code: one for one in await findings(site.world, site.outline, _where(site))}
    except NodeError as error:
        site.say(f"the gateway's files cannot be looked at: {error.message}", warning=True)
        return
    for code in _WATCHED:
        one = found.get(code)
        senses.stands(code, f"front door: {one.title} ({code}; {one.evidence}); {one.remedy}" if one else "")


async def probe(senses: Senses) -> None:
    """A trouble while clients find nobody at the gateway. Where none was made nothing is probed."""
    site, vain = senses.site, 0
    while True:
        await site.pause(_PROBE_EVERY)
        said = await _said(site)
        vain = 0 if said == _NO_KEY else vain + 1
        senses.stands(AWAY, _away(site, said) if vain >= _IN_VAIN else "")


async def _said(site: Site) -> int:
    said = await site.world.endpoint.probe(f"{_root(site)}/v1/models")
    return said if said == _NO_KEY or await _made(site) else _NO_KEY


async def _made(site: Site) -> bool:
    """Whether `up` has made a gateway; one that answers needs no such look."""
    try:
        read = service.read(f"{_where(site).home}/door", ENDPOINT)
        return bool((await site.world.hosts[site.head].run(read)).stdout.strip())
    except NodeError:
        return False


async def in_flight(senses: Senses) -> None:
    """Requests that the engine got, whatever it says of them: one that hangs shows its last figures."""
    site = senses.site
    socket = f"{_where(site).home}/door/{ADMIN}"
    while True:
        flights = await site.world.endpoint.in_flight(socket)
        senses.found(senses.detectors.gateway(flights, site.now()))
        await site.pause(_FLIGHTS_EVERY / 2 if flights else _FLIGHTS_EVERY)


async def programs(senses: Senses) -> None:
    """Restarts of the gateway's own programs: clients had no answer for a moment, and systemd says nothing of it."""
    site = senses.site
    while True:
        await restarted(site)
        await site.world.clock.sleep(max(site.scaled(_PROGRAMS_EVERY), _LEAST))


async def restarted(site: Site) -> None:
    """Noted when a program is another process than at the look before, also at that of another supervisor."""
    try:
        asked = commands.programs(_where(site).home, site.name, tuple(PROGRAMS))
        found = parse_programs(await site.world.hosts[site.head].run(asked))
    except NodeError:
        return
    for name, pid in found.items():
        before = int(site.keep.journal.recall().get(f"{_PROCESS}{name}", 0.0))
        if pid != before:
            site.remember({f"{_PROCESS}{name}": float(pid)})
        if before and pid != before:
            await note_restart(site, PROGRAMS[name], f"process {before} is {pid} now")


def _away(site: Site, said: int) -> str:
    how = f"says {said} where it should ask for a key" if said else "does not answer"
    return (
        f"the gateway {how} ({_root(site)}): clients do not reach the engine; its programs are the services "
        f"sparkwright-caddy-{site.name} and sparkwright-door-{site.name} on {site.head}, the same `sparkwright up` "
        "sets it up anew"
    )


def _root(site: Site) -> str:
    gateway = site.desired.recipe.serving.door
    return f"{'http' if gateway.tls is GatewayTls.OFF else 'https'}://{LOOPBACK}:{gateway.port}"


def _where(site: Site) -> Where:
    state = site.world.cluster.node(site.head).paths.state
    return Where(site.head, f"{state}/supervision/{site.name}", state, "", "")
