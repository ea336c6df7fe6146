"""`diagnose`: root causes from logs, wherever they are, and from the nodes of a deployment."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from sparkwright.app import queries
from sparkwright.app.check import Checked, check_nodes
from sparkwright.app.tasks import together
from sparkwright.app.world import World
from sparkwright.causes.diagnose import Reader, book, clients_faults, diagnosis
from sparkwright.causes.whole_log import ends
from sparkwright.domain.diagnosis import Diagnosis
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import FabricChoice, RankStatus
from sparkwright.domain.finding import Finding
from sparkwright.logscan.book import Book
from sparkwright.remote import evidence as ask
from sparkwright.supervision.detect.kernel import OOM

Named = tuple[str, Iterable[bytes]]
_ROUND_TRIP = 2.0  # seconds: less says nothing about a clock


@dataclass(frozen=True, slots=True)
class Examined:
    """findings: what is known to be wrong with the nodes; trouble: sentences about what could not be asked."""

    diagnosis: Diagnosis
    findings: tuple[Finding, ...] = ()
    trouble: tuple[str, ...] = ()
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class _Around:
    """One node beside its ranks' logs: its kernel log, what its GPU does now, and how far its clock is ahead."""

    node: str
    kernel_log: str
    kernel: Reader
    gpu: Reader
    ahead: float


def examine(
    sources: Iterable[Named], year: int, words: Mapping[str, str], impossible: Set[str] = frozenset()
) -> Diagnosis:
    """Logs given as (name, bytes)."""
    rules = book()
    readers = [_read(rules, name, chunks, year) for name, chunks in sources]
    return diagnosis(readers, words, impossible=impossible)


def _read(rules: Book, name: str, chunks: Iterable[bytes], year: int) -> Reader:
    reader = Reader(rules, name, year)
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    return reader


async def examine_deployment(world: World, deployment: str) -> Examined:
    """All ranks' logs, the kernel logs, what the GPUs do now, and the nodes' facts. Changes nothing.

    Raises UsageError when there is no such deployment.
    """
    rules, year = book(), year_of(world)
    ranks = await queries.chosen(world, deployment, None)
    nodes = tuple(dict.fromkeys(rank.node for rank in ranks))
    async with asyncio.TaskGroup() as group:
        logs = group.create_task(_rank_logs(world, rules, deployment))
        asked = group.create_task(_around_all(world, rules, nodes, year))
        looking = group.create_task(check_nodes(world))
    (around, trouble), checked = asked.result(), looking.result()
    kernels = {one.node: oom_killed(one.kernel_log, one.kernel_log) for one in around}
    over = [rank for rank in ranks if not rank.running]
    ended = _read(rules, ends.SOURCE, [ends.lines(over, kernels).encode()], year)
    beside = (ended, *(reader for one in around for reader in (one.kernel, one.gpu)))
    readers = [*logs.result().values(), *(reader for reader in beside if reader.source().lines)]
    ahead = {one.node: one.ahead for one in around}
    clocks = {name_of(rank): -ahead.get(rank.node, 0.0) for rank in ranks}
    words = words_of(ranks) | _fabric(checked.fabric, nodes[0])
    told = diagnosis(readers, words, clocks, clients_faults() if over else frozenset())
    return Examined(told, _of(checked, nodes), trouble, any(rank.simulated for rank in ranks))


def year_of(world: World) -> int:
    return datetime.fromtimestamp(world.clock.now(), UTC).year


def name_of(rank: RankStatus) -> str:
    return f"rank {rank.rank} on {rank.node}"


def words_of(ranks: Sequence[RankStatus]) -> dict[str, str]:
    """What the fixes' commands may name."""
    head = next((rank for rank in ranks if rank.rank == 0), ranks[0])
    peer = next((rank for rank in ranks if rank.node != head.node), head)
    words = {"deployment": head.deployment, "head": head.node, "node": head.node, "peer": peer.node}
    words |= {"recipe": head.recipe, "port": str(head.port), "model": head.served_name}
    return words | reading(head.deployment)


def reading(deployment: str) -> dict[str, str]:
    """How to read logs and ends of a deployment of ours, whatever runs it."""
    return {"logs": f"sparkwright logs {deployment} --tail 200", "ends": "sparkwright status"}


def _fabric(ways: Mapping[str, FabricChoice | None], node: str) -> dict[str, str]:
    way = ways.get(node)
    return {"iface": way.interface, "hca": ",".join(way.hcas)} if way else {}


async def _rank_logs(world: World, rules: Book, deployment: str) -> dict[str, Reader]:
    readers: dict[str, Reader] = {}
    async for rank, line in queries.logs(world, deployment, None, 0, False):
        name = name_of(rank)
        reader = readers.setdefault(name, Reader(rules, name, year_of(world)))
        reader.feed(f"{line}\n".encode("utf-8", "replace"))
    for reader in readers.values():
        reader.close()
    return readers


def oom_killed(log: str, lately: str) -> bool | None:
    """Whether the kernel has ended a process for want of memory lately; None without its log."""
    return bool(OOM.search(lately)) if log.strip() else None


async def _around_all(
    world: World, rules: Book, nodes: Sequence[str], year: int
) -> tuple[list[_Around], tuple[str, ...]]:
    asked = await together(_around(world, rules, node, year) for node in nodes)
    return [one for one in asked if isinstance(one, _Around)], tuple(one for one in asked if isinstance(one, str))


async def _around(world: World, rules: Book, node: str, year: int) -> _Around | str:
    before = world.clock.now()
    try:
        kernel, gpu, clock = await world.hosts[node].run_all([ask.kernel_log(), ask.utilization(), ask.clock()])
    except NodeError as error:
        return error.message
    text = clock.stdout.strip()
    ahead = float(text) - before if text.replace(".", "", 1).isdigit() else 0.0
    return _Around(
        node,
        kernel.stdout,
        _read(rules, f"kernel log of {node}", [kernel.stdout.encode("utf-8", "replace")], year),
        _read(rules, f"nvidia-smi dmon on {node}", [gpu.stdout.encode("utf-8", "replace")], year),
        ahead if abs(ahead) > _ROUND_TRIP else 0.0,
    )


def _of(checked: Checked, nodes: Sequence[str]) -> tuple[Finding, ...]:
    """Findings about the nodes of the deployment, and those about all."""
    return tuple(finding for finding in checked.findings if finding.subject in nodes or finding.severity.stops)
