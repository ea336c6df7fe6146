"""What can be done on the nodes to get memory back: drop the page cache, end other deployments, stop processes."""

from collections.abc import Iterator, Sequence

from sparkwright.domain.facts import GpuProcess, NodeFacts, Unknown
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.verdict import Action, ActionKind
from sparkwright.planner.usable import stoppable

_WORTH = GIB // 2
# sh as root, because the redirection needs the rights, too.
DROP = "sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'"


def actions(facts: Sequence[NodeFacts], deployment: str) -> tuple[tuple[Action, ...], ...]:
    """Each thing on every node where it helps; deployment: the one that is planned, whose own ranks are replaced."""
    found = [*(_dropped(node) for node in facts), *_downs(facts, deployment), *_stops(facts)]
    groups: dict[tuple[ActionKind, str], list[Action]] = {}
    for name, action in ((name, action) for name, action in found if action.frees >= _WORTH):
        groups.setdefault((action.kind, name), []).append(action)
    return tuple(tuple(group) for group in groups.values())


def _dropped(facts: NodeFacts) -> tuple[str, Action]:
    cached = 0 if isinstance(facts.memory, Unknown) else facts.memory.cached
    lost = f"{gib(cached)} of files on {facts.node} are read from disk again"
    return "", Action(facts.node, ActionKind.DROP_CACHE, DROP, cached, lost)


def _downs(facts: Sequence[NodeFacts], deployment: str) -> Iterator[tuple[str, Action]]:
    """A deployment of ours holds what GPU processes hold on its nodes; where two share a node nobody can tell."""
    for node in facts:
        ranks = () if isinstance(node.ranks, Unknown) else node.ranks
        names = {rank.deployment for rank in ranks if rank.running and not rank.simulated}
        if len(names) != 1 or names == {deployment}:
            continue
        (name,) = names
        held = _sized(() if isinstance(node.gpu_processes, Unknown) else node.gpu_processes)
        freed, pids = sum(size for _, size in held), tuple(process.pid for process, _ in held)
        lost = f"{name} no longer serves: {gib(freed)} on {node.node}"
        yield name, Action(node.node, ActionKind.STOP, f"sparkwright down {name}", freed, lost, pids, name)


def _stops(facts: Sequence[NodeFacts]) -> Iterator[tuple[str, Action]]:
    """By name: an engine's workers on two nodes are one thing to stop."""
    for node in facts:
        for process, size in _sized(stoppable(node)):
            name = process.name.rpartition("/")[2] or process.name
            lost = f"{name} (pid {process.pid}) on {node.node} ends: {gib(size)}"
            yield name, Action(node.node, ActionKind.STOP, f"sudo kill {process.pid}", size, lost, (process.pid,))


def _sized(processes: Sequence[GpuProcess]) -> list[tuple[GpuProcess, int]]:
    return [(process, process.used) for process in processes if isinstance(process.used, int)]
