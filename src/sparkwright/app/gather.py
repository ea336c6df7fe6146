"""Facts of all nodes at once: each node is asked everything in one round trip."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import Driver, NodeFacts, RankStatus
from sparkwright.facts.catalog import facts_of
from sparkwright.facts.fact import Fact
from sparkwright.ports import Clock, Host, Hosts

RanksFact = Callable[[Node], Fact[tuple[RankStatus, ...]]]
Gathered = dict[str, NodeFacts | NodeError]


async def gather(
    hosts: Hosts, nodes: Sequence[Node], clock: Clock, ranks: RanksFact | None = None, paths: Sequence[str] = ()
) -> Gathered:
    """Facts by node name, in the order of `nodes`; the error (Unreachable) of a node that could not be asked.

    ranks: how to ask a node for our ranks, where they are asked for. paths: as for `facts_of`.
    """

    def facts(node: Node) -> dict[str, Fact[object]]:
        return {**facts_of(node, paths), **({"ranks": ranks(node)} if ranks else {})}

    asked = [(hosts[node.name], node.name, facts(node)) for node in nodes]
    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(_ask(host, clock, name, wanted)) for host, name, wanted in asked}
    return {name: task.result() for name, task in tasks.items()}


def reached(gathered: Mapping[str, NodeFacts | NodeError]) -> dict[str, NodeFacts]:
    """The nodes that answered."""
    return {name: found for name, found in gathered.items() if isinstance(found, NodeFacts)}


def unanswered_nodes(gathered: Mapping[str, NodeFacts | NodeError]) -> dict[str, NodeError]:
    """The nodes that did not answer, with what is wrong."""
    return {name: found for name, found in gathered.items() if isinstance(found, NodeError)}


async def _ask(host: Host, clock: Clock, node: str, facts: Mapping[str, Fact[object]]) -> NodeFacts | NodeError:
    began = clock.now()
    try:
        answers = await host.run_all([fact.command for fact in facts.values()])
    except NodeError as error:
        return error
    at, rows = clock.now(), zip(facts.items(), answers, strict=True)
    read: dict[str, Any] = {field: fact.read(answer) for (field, fact), answer in rows}
    driver = read["driver"]
    firmware = driver.gsp_firmware if isinstance(driver, Driver) else driver
    return NodeFacts(node=node, at=at, asked=began, gsp_firmware=firmware, **read)
