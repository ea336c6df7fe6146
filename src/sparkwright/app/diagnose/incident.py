"""Evidence of a deployment that has failed: saved before anything is stopped, and its diagnosis."""

import asyncio
import json
import re
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from sparkwright.app.diagnose.diagnosing import oom_killed, year_of
from sparkwright.app.diagnose.examine import examine
from sparkwright.app.diagnose.split_log import cause_keys, end_lines
from sparkwright.app.gather import gather
from sparkwright.app.services import Services
from sparkwright.causes.diagnose import VERSIONS
from sparkwright.causes.whole_log.rules import ENDS
from sparkwright.domain.command import Command
from sparkwright.domain.diagnosis import Diagnosis
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import NodeFacts, RankStatus, Unknown
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import asdict, dataclass, field
from sparkwright.engines.dialect import without_clients
from sparkwright.facts import sample
from sparkwright.facts.ranks import docker_away, ranks_fact
from sparkwright.logscan.logline import line_time
from sparkwright.remote import evidence

# Bytes of one rank's log; what decides stands in its first error and its last lines.
HEAD, TAIL = 256 * 1024, 768 * 1024
# Seconds for everything that nodes are asked: nobody is served meanwhile.
LIMIT = 6.0
# Seconds by which clocks of nodes may differ.
_CLOCKS = 30.0
_KERNEL = "kernel log of "
RESET = "was reset by its hardware watchdog"
_LINES = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class IncidentRank:
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
    """files: name -> text. logs: what a diagnosis reads. ended: ranks that have, by their nodes.

    facts: of nodes, once complete. trouble: sentences about what could not be had. dockerless: of nodes that answer,
    where Docker does not. boots: node -> boot marker, '' where it is not known. resets: nodes whose
    watchdog ended the boot before this one. seen: lines of the supervisor's own
    about the machines.
    """

    deployment: str
    files: dict[str, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    ended: list[RankStatus] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    dockerless: list[str] = field(default_factory=list)
    boots: dict[str, str] = field(default_factory=dict)
    resets: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    facts: dict[str, NodeFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Heard:
    """The number of a rank's log lines since the last good answer, and the last of them; '' without any."""

    lines: int
    last: str

    def part(self, log: str) -> str:
        """The part of the log from there on; all of it if the last line is not found."""
        found = [line for line in _LINES.split(log) if line.strip()]
        last = max((at for at, line in enumerate(found) if self.last and line == self.last), default=None)
        return log if last is None else "\n".join((*found[max(last + 1 - self.lines, 0) :], ""))


@dataclass(frozen=True, slots=True)
class Outage:
    """The end of what served. what: the fault's sentence; good_at: when it answered last; heard: by a rank's label.

    boots: boot markers of before, by node. rebooted: nodes that are known to have been rebooted since.
    """

    what: str
    good_at: float
    heard: Mapping[str, Heard]
    boots: Mapping[str, str] = field(default_factory=dict)
    rebooted: tuple[str, ...] = ()

    def rebooters(self, now: Mapping[str, str]) -> list[str]:
        """The nodes whose boot marker is another one by now."""
        return sorted({*self.rebooted, *(n for n, boot in self.boots.items() if now.get(n, "") not in ("", boot))})

    def sentence(self, now: Mapping[str, str]) -> str:
        """The fault's sentence, with the nodes that were rebooted."""
        nodes = self.rebooters(now)
        if not nodes or self.what.endswith("rebooted"):
            return self.what
        return f"{self.what}; {', '.join(nodes)} {'was' if len(nodes) == 1 else 'were'} rebooted"


Part = tuple[str, Coroutine[Any, Any, None]]


async def collect(services: Services, deployment: str, ranks: Sequence[IncidentRank], limit: float = LIMIT) -> Evidence:
    """Collects the evidence that a stop would change: logs and memory, of all nodes at once.

    A node that does not answer in time is noted and holds up nothing else.
    """
    found = Evidence(deployment)
    work: list[Part] = []
    for rank in ranks:
        name = (f"rank{rank.number}-{rank.node}.log", rank.label)
        log = evidence.rank_log(rank.runtime, rank.handle, HEAD, TAIL)
        work.append(_text(services, found, rank.node, name, log))
    for node in dict.fromkeys(rank.node for rank in ranks):
        work.append(_text(services, found, node, (f"memory-{node}.txt", ""), evidence.memory()))
        work.append((f"which ranks of {node} have ended", _ended(services, found, node)))
    await _all(found, work, limit)
    return found


async def decisive(services: Services, found: Evidence, nodes: Sequence[str], limit: float = LIMIT) -> None:
    """Collects the rest that a diagnosis reads; it stays the same for some seconds, so the ranks may be stopped
    meanwhile.

    A relaunch waits for it, so it is little.
    """
    work: list[Part] = []
    for node in nodes:
        work.append(_text(services, found, node, (f"kernel-{node}.log", f"{_KERNEL}{node}"), evidence.kernel_log()))
        work.append(_text(services, found, node, (f"versions-{node}.txt", f"{VERSIONS}{node}"), evidence.versions()))
        work.append((f"boot marker of {node}", _boot(services, found, node)))
    await _all(found, work, limit)


async def complete(services: Services, found: Evidence, nodes: Sequence[str], limit: float = LIMIT) -> None:
    """The rest, for who reads the evidence later."""
    work: list[Part] = []
    for node in nodes:
        work.append(_text(services, found, node, (f"gpu-{node}.txt", ""), evidence.read_gpu()))
        work.append((f"facts of {node}", _facts(services, found, node)))
    await _all(found, work, limit)


async def _all(found: Evidence, work: Sequence[Part], limit: float) -> None:
    await asyncio.gather(*(_within(found, what, one, limit) for what, one in work))


def _text(services: Services, found: Evidence, node: str, name: tuple[str, str], command: Command) -> Part:
    """name: of the file, and of the source in the diagnosis ('': it is not read there)."""

    async def read() -> None:
        if text := (await services.run(node, command)).stdout:
            found.files[name[0]] = text
            found.logs.update({name[1]: text} if name[1] else {})

    return name[1] or name[0], read()


async def _ended(services: Services, found: Evidence, node: str) -> None:
    """Collects the ended ranks of a node. It runs before anything is stopped: later exits prove nothing."""
    fact = ranks_fact(services.cluster.node(node))
    done = await services.run(node, fact.command)
    if away := docker_away(done):
        found.dockerless.append(f"{away} on {node}")
    ranks = known_or_none(fact.read(done)) or ()
    found.ended.extend(rank for rank in ranks if rank.deployment == found.deployment and not rank.running)


async def _boot(services: Services, found: Evidence, node: str) -> None:
    told = sample.parse(await services.run(node, sample.memory()))
    found.boots[node] = "" if isinstance(told, Unknown) else told.boot
    if not isinstance(told, Unknown) and told.was_reset:
        found.resets.append(node)


async def _facts(services: Services, found: Evidence, node: str) -> None:
    told = (await gather(services.hosts, [services.cluster.node(node)], services.clock, ranks_fact))[node]
    if isinstance(told, NodeFacts):
        found.facts[node] = told
        found.files[f"facts-{node}.json"] = json.dumps(asdict(told), indent=1, default=str)


async def _within(found: Evidence, what: str, work: Coroutine[Any, Any, None], limit: float) -> None:
    try:
        async with asyncio.timeout(limit):
            await work
    except TimeoutError:
        found.trouble.append(f"{what}: no answer within {limit:g} s")
    except NodeError as error:
        found.trouble.append(f"{what}: {error.message}")


async def explain(
    services: Services, found: Evidence, words: Mapping[str, str], outage: Outage | None = None
) -> Diagnosis:
    """The causes in the evidence. Read in a thread: the loop keeps updating the gateway.

    outage: only what came after the last good answer can be its cause, and facts of nodes outweigh logs.
    """
    logs = dict(found.logs)
    if outage:
        logs = {name: _after(name, text, outage, year_of(services)) for name, text in logs.items()}
    logs = {name: text if name.startswith(_KERNEL) else without_clients(text) for name, text in logs.items()}
    kernels = {name.removeprefix(_KERNEL): text for name, text in found.logs.items() if name.startswith(_KERNEL)}
    killed = {node: oom_killed(text, logs[f"{_KERNEL}{node}"]) for node, text in kernels.items()}
    logs[ENDS] = end_lines(found.ended, killed, outage.sentence(found.boots) if outage else "")
    logs[ENDS] += "".join(f"{line}\n" for line in found.seen)
    if outage:
        resets = sorted({*found.resets}.intersection(outage.rebooters(found.boots)))
        # First: a line without a known beginning would be taken as the rest of the one before
        logs[ENDS] = "".join(f"{node} {RESET}\n" for node in resets) + logs[ENDS]
    sources = [(name, [text.encode("utf-8", "replace")]) for name, text in sorted(logs.items()) if text]
    year, impossible = year_of(services), cause_keys(stops=False) if outage else frozenset[str]()
    return await asyncio.to_thread(lambda: examine(sources, year, words, impossible, described=False))


def _after(name: str, text: str, outage: Outage, year: int) -> str:
    """The part of a log that may show the cause; a kernel's by its own times."""
    if heard := outage.heard.get(name):
        return heard.part(text)
    if not name.startswith(_KERNEL):
        return text
    lines, since = text.splitlines(keepends=True), outage.good_at - _CLOCKS
    at = next((n for n, line in enumerate(lines) if (line_time(line, year) or 0.0) >= since), len(lines))
    return "".join(lines[at:])
