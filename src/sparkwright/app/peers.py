"""How one node logs in to another for a copy."""

from sparkwright.app.cluster_state import require_all
from sparkwright.app.gather import gather, reached
from sparkwright.app.services import Services
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.plan import Plan
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.service import parse_peer
from sparkwright.planner.fabric import choose_fabrics
from sparkwright.remote import staging


async def peer_of(services: Services, plan: Plan | None, source: str, node: str) -> staging.Peer:
    """The way from source to node, as the node itself reports it over the connection that is already trusted.

    Raises CommandFailed when it does not answer, or when the two share no fabric.
    """
    reach = parse_peer(await services.hosts[node].run(staging.peer()))
    if isinstance(reach, Unknown):
        raise CommandFailed(node, f"how to log in there: {reach.why} {reach.raw}")
    address, port = await _address(services, plan, source, node), reach.port
    local = services.cluster.node(source).is_local and services.cluster.node(node).is_local
    return staging.Peer(reach.user, address, port, staging.known_hosts(address, port, reach.keys), local)


async def _address(services: Services, plan: Plan | None, source: str, node: str) -> str:
    """The node's fabric address; without a plan, or of one that does without the source, the one that the two share."""
    if plan and source in plan.placement.nodes:
        return plan.placement.fabric[node].address
    pair = [services.cluster.node(name) for name in (node, source)]
    gathered = await gather(services.hosts, pair, services.clock)
    require_all(gathered)
    decision = choose_fabrics(pair, reached(gathered))[node]
    if decision.choice is None:
        why = "; ".join(finding.title for finding in decision.findings)
        raise CommandFailed(node, f"no fabric between {source} and {node}: {why}", "see `sparkwright check`")
    return decision.choice.address
