"""The way from the head to its workers, so that a supervisor there needs nobody's laptop and nobody's agent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwright.app.lease import run_or_raise
from sparkwright.app.services import Services, by_node, understood
from sparkwright.checks.supervision import NO_SSH
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.finding import Finding
from sparkwright.domain.service import Installation, Reach, ServiceHost
from sparkwright.facts.fact import Plain
from sparkwright.facts.service import parse_reach
from sparkwright.remote import node_ssh, service

_OK = "ok"


async def open_ways(
    services: Services, where: Installation, service_host: ServiceHost, workers: Sequence[str], tag: str
) -> tuple[Finding, ...]:
    """Afterwards `ssh -F <home>/ssh/config WORKER` works on the head for every worker without a finding.

    The key is added on a worker only where the user's own keys on the head do not open it. Raises NodeError.
    """
    key = (await run_or_raise(services, where.node, node_ssh.make_key(where.home, tag))).stdout.strip()
    if not Plain.HOST_KEY.fits(key):
        raise CommandFailed(where.node, f"the supervisor's ssh key is none: {key[:100]!r}")

    async def reach(name: str) -> Reach:
        return understood(name, "how others reach it", parse_reach(await services.run(name, service.read_reach())))

    reaches = await by_node(workers, reach)
    await _configure(services, where, reaches)
    line = node_ssh.authorized_line(key, service_host.addresses, tag)
    tried = await by_node(workers, lambda name: _opened(services, where, name, reaches[name], (line, tag)))
    best = {name: _best(reaches[name], told) for name, told in tried.items()}
    await _configure(services, where, {name: found or reaches[name] for name, found in best.items()})
    return tuple(
        NO_SSH.on(
            where.node,
            "; ".join(f"{address}: {printed}" for address, printed in told.items()),
            title=f"no supervisor: it would not reach {name} from here by ssh",
            fix=f"let sshd on {name} take public keys from this node's addresses, then the same `sparkwright up` again",
        )
        for name, told in tried.items()
        if not best[name]
    )


async def _opened(
    services: Services, where: Installation, name: str, reach: Reach, key: tuple[str, str]
) -> dict[str, str]:
    tried = await _tried(services, where, name, reach)
    if _OK not in tried.values():
        await run_or_raise(services, name, node_ssh.authorize(*key))
        tried = await _tried(services, where, name, reach)
    return tried


async def _tried(services: Services, where: Installation, name: str, reach: Reach) -> dict[str, str]:
    """Address -> `ok`, or what ssh printed."""
    done = await run_or_raise(services, where.node, node_ssh.attempt(where.home, name, reach.addresses))
    return {at: said for at, tab, said in (row.partition("\t") for row in done.stdout.splitlines()) if tab}


def _best(reach: Reach, tried: Mapping[str, str]) -> Reach | None:
    """The addresses that work, in their order; None without any."""
    good = tuple(address for address in reach.addresses if tried.get(address) == _OK)
    return replace(reach, addresses=good) if good else None


async def _configure(services: Services, where: Installation, reaches: Mapping[str, Reach]) -> None:
    ways, host = tuple(reaches.items()), services.hosts[where.node]
    await host.put(node_ssh.known_hosts(ways).encode(), f"{where.home}/ssh/known_hosts", 0o600)
    await host.put(node_ssh.config(where.home, ways).encode(), f"{where.home}/ssh/config", 0o600)
