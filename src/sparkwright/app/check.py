"""`check`: facts of all nodes, then the rules that need nothing but facts."""

from sparkwright.app.gather import gather, lost, reached
from sparkwright.app.survey import ranks_fact
from sparkwright.app.world import World
from sparkwright.domain.errors import NodeError
from sparkwright.domain.finding import Finding
from sparkwright.planner.fabric import choose_fabrics
from sparkwright.rules.catalog import check_all, worst_first
from sparkwright.rules.rule import Context

Checked = tuple[tuple[Finding, ...], tuple[NodeError, ...], int]


async def check_nodes(world: World) -> Checked:
    """Findings worst first, nodes that did not answer, and how many were asked. Changes nothing."""
    nodes = world.cluster.ordered
    gathered = await gather(world.hosts, nodes, world.clock, ranks_fact)
    facts = reached(gathered)
    present = [node for node in nodes if node.name in facts]
    fabric = [f for d in choose_fabrics(present, facts).values() for f in d.findings]
    findings = worst_first((*fabric, *check_all(Context(world.cluster, facts))))
    return findings, tuple(lost(gathered).values()), len(nodes)
