"""`check`: facts of all nodes, then the rules that need nothing but facts; with `--deep`, measurements, too."""

import asyncio
from collections.abc import Mapping
from importlib import import_module

from sparkwright.app.gather import gather, reached, unanswered_nodes
from sparkwright.app.lease import holding
from sparkwright.app.services import Services
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import FabricChoice, NodeFacts
from sparkwright.domain.finding import Finding
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.ranks import ranks_fact

_RULES = "sparkwright.checks.catalog"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """findings: worst first; lost: nodes that did not answer; asked: how many were asked.

    facts, fabric: of the nodes that answered, by name; None where no way to the peers was found. seconds: it took.
    ignored, old: as checks.attention puts them aside.
    """

    findings: tuple[Finding, ...]
    lost: tuple[NodeError, ...]
    asked: int
    facts: Mapping[str, NodeFacts]
    fabric: Mapping[str, FabricChoice | None]
    seconds: float = 0.0
    ignored: tuple[Finding, ...] = ()
    old: tuple[tuple[Finding, float], ...] = ()


async def check_nodes(services: Services) -> CheckReport:
    """Changes nothing. The rules are loaded while the nodes answer."""
    began, nodes = services.clock.monotonic(), services.cluster.ordered
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(gather(services.hosts, nodes, services.clock, ranks_fact))
        group.create_task(asyncio.to_thread(import_module, _RULES))
    gathered = asking.result()
    facts = reached(gathered)
    from sparkwright.checks.catalog import check_all, worst_first
    from sparkwright.domain.check import Context
    from sparkwright.planner.fabric import choose_fabrics

    chosen = choose_fabrics([node for node in services.cluster.ordered if node.name in facts], facts)
    fabric = [finding for decision in chosen.values() for finding in decision.findings]
    findings = worst_first((*fabric, *check_all(Context(services.cluster, facts))))
    ways = {name: decision.choice for name, decision in chosen.items()}
    took = services.clock.monotonic() - began
    return CheckReport(findings, tuple(unanswered_nodes(gathered).values()), len(nodes), facts, ways, took)


async def check_deeply(services: Services, seize: bool = False) -> CheckReport:
    """Checks the nodes and measures, under the leases of the nodes that answered: a start must not meet a load. Raises
    Busy."""
    from sparkwright.app.check.deep import run_deep_checks
    from sparkwright.checks.catalog import worst_first

    began = services.clock.monotonic()
    checked = await check_nodes(services)
    async with holding(services, list(checked.facts), "check --deep", seize):
        measured = await run_deep_checks(services, services.cluster.ordered, checked.facts)
    findings = worst_first((*checked.findings, *measured))
    return replace(checked, findings=findings, seconds=services.clock.monotonic() - began)
