"""`diagnose`: root causes from logs, wherever they are, and from the nodes of a deployment."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import inf

from sparkwright.app import queries
from sparkwright.app.check.checking import CheckReport, check_nodes
from sparkwright.app.diagnose.examine import Examined, Named, read
from sparkwright.app.diagnose.split_log import SplitReader, cause_keys, end_lines
from sparkwright.app.services import Services, together
from sparkwright.causes.diagnose import VERSIONS, Reader, diagnosis, log_book, with_explanation
from sparkwright.causes.whole_log.rules import ENDS
from sparkwright.domain.diagnosis import Cause, Diagnosis
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import NodeFacts, RankStatus, Unknown
from sparkwright.domain.finding import Finding
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.kernel import OOM
from sparkwright.facts.store import supervised_fact
from sparkwright.logscan.logline import line_time, zone_seconds
from sparkwright.remote import evidence as ask

_ROUND_TRIP = 2.0  # seconds: less says nothing about a clock
_LATE = 5.0  # seconds: what a log's times may be off, and what comes just before an answer may belong to a fault
_FIRST_LINE = 600.0  # seconds in which a rank logs something after its start
_HANGS = 60.0  # seconds since the last answer, or the start: what is busy for less than that does not hang


@dataclass(frozen=True, slots=True)
class _Around:
    """The kernel log and the GPU state of one node."""

    node: str
    kernel_log: str
    gpu: Reader


@dataclass(frozen=True, slots=True)
class _Clock:
    """A node's clock. ahead: seconds ahead of this machine; zone: seconds east of UTC. lives: its supervisors'
    reports."""

    ahead: float = 0.0
    zone: float = 0.0
    lives: tuple[Live, ...] = ()


def versions_on(facts: Mapping[str, NodeFacts]) -> list[Named]:
    """The versions that nodes report, as sources of a diagnosis."""
    texts = {}
    for node, one in facts.items():
        kernel, driver = known_or_none(one.kernel), known_or_none(one.driver)
        found = (
            (f"Linux {node}", kernel and kernel.release),
            ("Driver Version:", driver and known_or_none(driver.version)),
        )
        texts[node] = "".join(f"{what} {version}\n" for what, version in found if version)
    return [(f"{VERSIONS}{node}", [text.encode("utf-8", "replace")]) for node, text in texts.items() if text]


async def examine_deployment(services: Services, deployment: str) -> Examined:
    """All ranks' logs, the kernel logs, what the GPUs do now, and the nodes' facts. Changes nothing.

    What was logged before the last good answer, or before its start, does not explain what is wrong now: it is apart.
    Raises UsageError when there is no such deployment.
    """
    ranks, clocks = await asyncio.gather(queries.chosen(services, deployment, None), _clocks(services, deployment))
    since, answered = _since(ranks, clocks)
    nodes = tuple(dict.fromkeys(rank.node for rank in ranks))
    async with asyncio.TaskGroup() as group:
        logs = group.create_task(_rank_logs(services, ranks, clocks, since))
        asked = group.create_task(_around_all(services, nodes))
        looking = group.create_task(check_nodes(services))
    (around, trouble), checked = asked.result(), looking.result()
    year = year_of(services)
    serves = answered and any(live.phase is DeploymentState.READY for clock in clocks.values() for live in clock.lives)
    is_young = since is not None and services.clock.now() - since < _HANGS
    kernels = [_kernel(one, year, (since or -inf) + clocks[one.node].ahead) for one in around]
    way = checked.fabric.get(nodes[0])
    told, earlier = _judged(
        _Read(logs.result(), kernels, around, ranks, answered, versions_on(checked.facts), serves or is_young),
        words_of(ranks) | ({"iface": way.interface, "hca": ",".join(way.hcas)} if way else {}),
        {name_of(rank): -clocks[rank.node].ahead for rank in ranks},
        year,
    )
    simulated = any(rank.simulated for rank in ranks)
    return Examined(told, _of(checked, nodes), trouble, simulated, since, answered, earlier, serves)


@dataclass(frozen=True, slots=True)
class _Read:
    """All that was read of a deployment. moves: it answers, or did a moment ago: a busy GPU works, it does not hang."""

    logs: Sequence[SplitReader]
    kernels: Sequence[SplitReader]
    around: Sequence[_Around]
    ranks: Sequence[RankStatus]
    answered: bool
    versions: Sequence[Named]
    moves: bool


def _judged(
    given: _Read, words: Mapping[str, str], clocks: Mapping[str, float], year: int
) -> tuple[Diagnosis, tuple[Cause, ...]]:
    """The diagnosis of the present state, and the causes that only earlier lines show."""
    kernels = {one.node: oom_killed(one.kernel_log, one.kernel_log) for one in given.around}
    over = [rank for rank in given.ranks if not rank.running]
    ended = read(log_book(), ENDS, [end_lines(over, kernels).encode()], year)
    found = (read(log_book(), name, chunks, year) for name, chunks in given.versions)
    gpus = () if given.moves else (one.gpu for one in given.around)
    beside = [reader for reader in (ended, *gpus, *found) if reader.source().lines]
    every = (*given.logs, *given.kernels)
    current = [*(reader for log in every for reader in log.current), *beside]
    early = [log.early for log in every if log.early]
    clients = cause_keys(stops=False, family="api-and-client")
    now = diagnosis(current, words, clocks, clients if over else frozenset(), early)
    known = {cause.key for cause in now.causes}
    slow = [log.early for log in given.logs if log.early] if given.answered else []
    still = [
        cause
        for cause in diagnosis(slow, words, clocks, clients | cause_keys(stops=True)).causes
        if cause.key not in known and not cause.severity.stops
    ]
    known |= {cause.key for cause in still}
    old = diagnosis(early, words, clocks, frozenset(known)).causes
    ranks = [reader for log in given.logs for reader in log.current]
    impossible = clients if over else frozenset()
    return with_explanation(replace(now, causes=(*now.causes, *still)), ranks, words, impossible), old


async def _clocks(services: Services, deployment: str) -> dict[str, _Clock]:
    """The clocks of all nodes; a node that does not answer is reported by the other questions."""
    found = await together(_clock(services, name, deployment) for name in services.cluster.names)
    return dict(zip(services.cluster.names, found, strict=True))


async def _clock(services: Services, node: str, deployment: str) -> _Clock:
    fact, before = supervised_fact(node, services.cluster.node(node).paths.state), services.clock.now()
    try:
        clock, watched = await services.hosts[node].run_all([ask.read_clock(), fact.command])
    except NodeError:
        return _Clock()
    text, _, zone = clock.stdout.strip().partition(" ")
    ahead = float(text) - before if text.replace(".", "", 1).isdigit() else 0.0
    told = fact.read(watched)
    mine = () if isinstance(told, Unknown) else tuple(one for one in told if one.deployment == deployment)
    lives = tuple(live for one in mine if (live := one.current))
    return _Clock(ahead if abs(ahead) > _ROUND_TRIP else 0.0, zone_seconds(zone), lives)


def _since(ranks: Sequence[RankStatus], clocks: Mapping[str, _Clock]) -> tuple[float | None, bool]:
    """The time of the last good answer and True; without an answer, the start of the running ranks and False. Both in
    this machine's time."""
    answers = [
        live.canary.at - clock.ahead - _LATE
        for clock in clocks.values()
        for live in clock.lives
        if live.canary and live.canary.seconds is not None
    ]
    starts = [at - clocks[rank.node].ahead for rank in ranks if rank.running and (at := _started(rank)) is not None]
    start = min(starts, default=None)
    if answers and max(answers) > (start or 0.0):
        return max(answers), True
    return start, False


def _started(rank: RankStatus) -> float | None:
    """The start of a rank by its node's clock; Docker writes it as text for a container."""
    return float(rank.started) if rank.started.isdigit() else line_time(rank.started, 1970)


def _border(rank: RankStatus, clock: _Clock, since: float | None, first: float) -> float:
    """The time `since` in the rank's own log, which names no zone. first: the log's first time, which tells the zone: a
    log begins with the start, in UTC (a container) or in the node's zone. -inf if unknown."""
    started = _started(rank)
    if since is None or started is None:
        return -inf
    zone = next((one for one in (0.0, clock.zone) if -_LATE <= first - started - one <= _FIRST_LINE), None)
    if zone is None and first < started:
        return -inf
    return since + clock.ahead + (min(0.0, clock.zone) if zone is None else zone)


def _kernel(around: _Around, year: int, border: float) -> SplitReader:
    log = SplitReader(f"kernel log of {around.node}", year, lambda _: border)
    for line in around.kernel_log.splitlines():
        log.feed(line)
    log.close()
    return log


def year_of(services: Services) -> int:
    return datetime.fromtimestamp(services.clock.now(), UTC).year


def name_of(rank: RankStatus) -> str:
    return f"rank {rank.rank} on {rank.node}"


def words_of(ranks: Sequence[RankStatus]) -> dict[str, str]:
    """Names that the commands of fixes may contain."""
    head = next((rank for rank in ranks if rank.rank == 0), ranks[0])
    peer = next((rank for rank in ranks if rank.node != head.node), head)
    words = {"deployment": head.deployment, "head": head.node, "node": head.node, "peer": peer.node}
    words |= {"recipe": head.recipe, "port": str(head.port), "model": head.served_name, "runtime": str(head.runtime)}
    return words | reading(head.deployment)


def reading(deployment: str) -> dict[str, str]:
    """Commands that show the logs and the exits of our deployment, whatever its runtime."""
    return {"logs": f"sparkwright logs {deployment} --tail 200", "ends": "sparkwright status"}


async def _rank_logs(
    services: Services, ranks: Sequence[RankStatus], clocks: Mapping[str, _Clock], since: float | None
) -> list[SplitReader]:
    year = year_of(services)
    logs = {
        rank.rank: SplitReader(name_of(rank), year, partial(_border, rank, clocks[rank.node], since)) for rank in ranks
    }
    async for rank, line in queries.logs(services, ranks[0].deployment, None, 0, False):
        if rank.rank in logs:
            logs[rank.rank].feed(line)
    for log in logs.values():
        log.close()
    return list(logs.values())


def oom_killed(log: str, lately: str) -> bool | None:
    """True if the kernel recently killed a process for lack of memory; None without its log."""
    return bool(OOM.search(lately)) if log.strip() else None


async def _around_all(services: Services, nodes: Sequence[str]) -> tuple[list[_Around], tuple[str, ...]]:
    asked = await together(_around(services, node) for node in nodes)
    return [one for one in asked if isinstance(one, _Around)], tuple(one for one in asked if isinstance(one, str))


async def _around(services: Services, node: str) -> _Around | str:
    try:
        kernel, gpu = await services.hosts[node].run_all([ask.kernel_log(), ask.utilization()])
    except NodeError as error:
        return error.message
    busy = [gpu.stdout.encode("utf-8", "replace")]
    return _Around(node, kernel.stdout, read(log_book(), f"nvidia-smi dmon on {node}", busy, year_of(services)))


def _of(checked: CheckReport, nodes: Sequence[str]) -> tuple[Finding, ...]:
    """Findings about the nodes of the deployment, and those about all."""
    return tuple(finding for finding in checked.findings if finding.subject in nodes or finding.severity.stops)
