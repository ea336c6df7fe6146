"""The way from the head to its workers, so that a supervisor there needs nobody's laptop and nobody's agent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwright.app.disarm import did
from sparkwright.app.tasks import together
from sparkwright.app.world import World
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding
from sparkwright.domain.service import Reach, Seat, Where
from sparkwright.facts.fact import Plain
from sparkwright.facts.service import parse_reach
from sparkwright.remote import node_ssh, service
from sparkwright.supervision.findings import no_way

_OK = "ok"


async def open_ways(world: World, where: Where, seat: Seat, workers: Sequence[str], tag: str) -> tuple[Finding, ...]:
    """Afterwards `ssh -F <home>/ssh/config WORKER` works on the head for every worker without a finding.

    The key is added on a worker only where the user's own keys on the head do not open it. Raises NodeError.
    """
    key = (await did(world, where.node, node_ssh.make_key(where.home, tag))).stdout.strip()
    if not Plain.HOST_KEY.fits(key):
        raise CommandFailed(where.node, f"the supervisor's ssh key is none: {key[:100]!r}")
    reaches = dict(zip(workers, await together(_reach(world, name) for name in workers), strict=True))
    await _configure(world, where, reaches)
    line = node_ssh.authorized_line(key, seat.addresses, tag)
    tried = await together(_opened(world, where, name, reaches[name], (line, tag)) for name in workers)
    best = {name: _best(reaches[name], told) for name, told in zip(workers, tried, strict=True)}
    await _configure(world, where, {name: found or reaches[name] for name, found in best.items()})
    lost = [(name, told) for name, told in zip(workers, tried, strict=True) if not best[name]]
    return tuple(no_way(where.node, name, _said(told)) for name, told in lost)


async def _opened(world: World, where: Where, name: str, reach: Reach, key: tuple[str, str]) -> dict[str, str]:
    tried = await _tried(world, where, name, reach)
    if _OK not in tried.values():
        await did(world, name, node_ssh.authorize(*key))
        tried = await _tried(world, where, name, reach)
    return tried


async def _tried(world: World, where: Where, name: str, reach: Reach) -> dict[str, str]:
    """Address -> `ok`, or what ssh said."""
    done = await did(world, where.node, node_ssh.attempt(where.home, name, reach.addresses))
    return {at: said for at, tab, said in (row.partition("\t") for row in done.stdout.splitlines()) if tab}


def _best(reach: Reach, tried: Mapping[str, str]) -> Reach | None:
    """Only the addresses that work, in their order."""
    good = tuple(address for address in reach.addresses if tried.get(address) == _OK)
    return replace(reach, addresses=good) if good else None


def _said(tried: Mapping[str, str]) -> str:
    return "; ".join(f"{address}: {said}" for address, said in tried.items())


async def _configure(world: World, where: Where, reaches: Mapping[str, Reach]) -> None:
    ways, host = tuple(reaches.items()), world.hosts[where.node]
    await host.put(node_ssh.known_hosts(ways).encode(), f"{where.home}/ssh/known_hosts", 0o600)
    await host.put(node_ssh.config(where.home, ways).encode(), f"{where.home}/ssh/config", 0o600)


async def _reach(world: World, name: str) -> Reach:
    found = parse_reach(await world.hosts[name].run(service.reach()))
    if isinstance(found, Unknown):
        raise CommandFailed(name, f"how others reach it: {found.why} {found.raw}")
    return found
