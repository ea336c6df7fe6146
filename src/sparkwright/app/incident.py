"""Evidence of a deployment that has failed: saved before anything is stopped, and what can be told from it."""

import asyncio
import json
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sparkwright.app.diagnose import examine, year_of
from sparkwright.app.gather import gather
from sparkwright.app.world import World
from sparkwright.commands import diagnose as ask
from sparkwright.commands import evidence
from sparkwright.domain.command import Command
from sparkwright.domain.diagnosis import Diagnosis
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import NodeFacts, RankStatus, Unknown
from sparkwright.facts.ranks import docker_away, ranks_fact

# Bytes of one rank's log; what decides stands in its first error and its last lines.
HEAD, TAIL = 256 * 1024, 768 * 1024
# Seconds for everything that nodes are asked: nobody is served meanwhile.
LIMIT = 6.0
_ENDS = "the ranks' ends"


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank whose log is evidence. label: `rank 1 on spark-2`."""

    number: int
    node: str
    runtime: str
    handle: str

    @property
    def label(self) -> str:
        return f"rank {self.number} on {self.node}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """files: name -> text. logs: what a diagnosis reads. trouble: sentences about what could not be had.

    dockerless: the same of nodes that answer, where Docker does not.
    """

    deployment: str
    files: dict[str, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    dockerless: list[str] = field(default_factory=list)


Part = tuple[str, Coroutine[Any, Any, None]]


async def collect(world: World, deployment: str, ranks: Sequence[Rank], limit: float = LIMIT) -> Evidence:
    """What a stop would change: logs and memory, of all nodes at once.

    A node that does not answer in time is noted and holds up nothing else.
    """
    found = Evidence(deployment)
    work = [_log(world, found, rank) for rank in ranks]
    for node in dict.fromkeys(rank.node for rank in ranks):
        work.append(_text(world, found, node, (f"memory-{node}.txt", ""), evidence.memory()))
        work.append((f"which ranks of {node} have ended", _ended(world, found, node)))
    await _all(found, work, limit)
    return found


async def complete(world: World, found: Evidence, nodes: Sequence[str], limit: float = LIMIT) -> None:
    """What is the same for some seconds more: the ranks may be stopped meanwhile."""
    work: list[Part] = []
    for node in nodes:
        work.append(_text(world, found, node, (f"kernel-{node}.log", f"kernel log of {node}"), ask.kernel_log()))
        work.append(_text(world, found, node, (f"gpu-{node}.txt", ""), evidence.gpu()))
        work.append((f"facts of {node}", _facts(world, found, node)))
    await _all(found, work, limit)


async def _all(found: Evidence, work: Sequence[Part], limit: float) -> None:
    await asyncio.gather(*(_within(found, what, one, limit) for what, one in work))


def _log(world: World, found: Evidence, rank: Rank) -> Part:
    name = (f"rank{rank.number}-{rank.node}.log", rank.label)
    return _text(world, found, rank.node, name, evidence.rank_log(rank.runtime, rank.handle, HEAD, TAIL))


def _text(world: World, found: Evidence, node: str, name: tuple[str, str], command: Command) -> Part:
    """name: of the file, and of the source in the diagnosis ('': it is not read there)."""

    async def bring() -> None:
        text = (await world.hosts[node].run(command)).stdout
        if text:
            found.files[name[0]] = text
            found.logs.update({name[1]: text} if name[1] else {})

    return name[1] or name[0], bring()


async def _ended(world: World, found: Evidence, node: str) -> None:
    """Before anything is stopped: what ends then tells nothing of what has happened."""
    fact = ranks_fact(world.cluster.node(node))
    done = await world.hosts[node].run(fact.command)
    told, away = fact.read(done), docker_away(done)
    if away:
        found.dockerless.append(f"{away} on {node}")
    if ends := _ends(told, found.deployment):
        found.logs[_ENDS] = found.logs.get(_ENDS, "") + ends


async def _facts(world: World, found: Evidence, node: str) -> None:
    told = (await gather(world.hosts, [world.cluster.node(node)], world.clock, ranks_fact))[node]
    if isinstance(told, NodeFacts):
        found.files[f"facts-{node}.json"] = json.dumps(asdict(told), indent=1, default=str)


def _ends(found: tuple[RankStatus, ...] | Unknown, deployment: str) -> str:
    """What the container runtime says of ranks that ended, as lines that rules can read."""
    ranks = () if isinstance(found, Unknown) else found
    gone = [rank for rank in ranks if rank.deployment == deployment and not rank.running]
    return "".join(f"rank {r.rank} on {r.node} {r.state}: ExitCode={r.code} OOMKilled={r.oom_killed}\n" for r in gone)


async def _within(found: Evidence, what: str, work: Coroutine[Any, Any, None], limit: float) -> None:
    try:
        async with asyncio.timeout(limit):
            await work
    except TimeoutError:
        found.trouble.append(f"{what}: no answer within {limit:g} s")
    except NodeError as error:
        found.trouble.append(f"{what}: {error.message}")


async def explain(world: World, found: Evidence, words: Mapping[str, str]) -> Diagnosis:
    """The causes that the evidence tells. Read in a thread: the loop goes on with telling the front door."""
    sources = [(name, [text.encode("utf-8", "replace")]) for name, text in sorted(found.logs.items()) if text]
    return await asyncio.to_thread(examine, sources, year_of(world), words)


async def save(world: World, node: str, folder: str, files: Mapping[str, str]) -> tuple[str, ...]:
    """Puts the files into the folder on the node, for its user's eyes only; sentences about those that failed."""

    async def put(name: str, text: str) -> str:
        try:
            await world.hosts[node].put(text.encode("utf-8", "replace"), f"{folder}/{name}", 0o600)
        except NodeError as error:
            return error.message
        return ""

    told = await asyncio.gather(*(put(name, text) for name, text in files.items()))
    return tuple(one for one in told if one)
