"""One node's pool of memory: its size, what is in use, what the next engine gets, and what would free more."""

from collections.abc import Iterator, Sequence

from sparkwright.domain.facts import Gpu, GpuProcess, Memory, NodeFacts, Unknown
from sparkwright.domain.host_facts import LARGE_BLOCK
from sparkwright.domain.ledger import IN_USE, Counts, FreeMemory, LedgerLine, Origin
from sparkwright.domain.units import GIB, MIB, gib
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Action, ActionKind
from sparkwright.planner.usable import stoppable

POOL = "pool"
# What the driver keeps of a GPU's memory and does not say, MiB: 326 of 24,463 on an RTX 5090, 479 of 81,559 on an H100,
# 616 and 700 of 143,771 on H200s, 637 of 97,887 on an RTX PRO 6000.
_RESERVED = (250 * MIB, 600 * MIB, 1024 * MIB)
# A freshly booted GB10 has 5.4-7.6 GiB that no counter explains (firmware, carve-outs).
# Only what exceeds them can be pages that the driver kept of an engine that has gone.
UNEXPLAINED_AT_BOOT = 8 * GIB
_WORTH = GIB // 2
# sh as root, because the redirection needs the rights, too.
DROP = "sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'"


@dataclass(frozen=True, slots=True)
class Pool:
    """total: what there is, as CUDA counts where a GPU has memory of its own. used: what others hold. unified: CPU and
    GPU share it. sharing: ranks that live in one.

    seen: None for a GPU with memory of its own.
    """

    total: LedgerLine
    used: LedgerLine
    unified: bool = True
    sharing: int = 1
    seen: FreeMemory | None = None

    @property
    def free(self) -> int:
        return self.total.bytes - self.used.bytes


def memory_pool(
    facts: NodeFacts, deployment: str, ranks_here: int, counts: Counts = Counts.AVAILABLE
) -> Pool | Unknown:
    """The memory that ranks of that deployment will find; its own running ranks are replaced, so they count as free.

    counts: by which figure the engine goes; of MemFree, `up` raises it by as much page cache as it may evict.
    """
    if own := own_memory(facts):
        smallest = min((_cuda_total(gpu, size) for gpu, size in own), key=lambda line: line.bytes)
        return _discrete(facts, smallest, deployment, -(-ranks_here // len(own)))
    memory = facts.memory
    if isinstance(memory, Unknown):
        return Unknown(memory.raw, memory.why)
    total = LedgerLine(POOL, memory.total, Origin.MEASURED, "MemTotal of this node")
    used = _in_use(facts, memory, deployment)
    if counts is Counts.FREE and memory.free < memory.available:
        held = memory.available - memory.free
        why = f"{used.why}; this engine counts MemFree: {gib(held)} of page cache stay in use where `up` may not evict"
        used = replace(used, why=why, low=used.low if used.low is not None else used.bytes, high=used.bytes + held)
    large = memory.in_blocks(LARGE_BLOCK) if memory.blocks else None
    seen = None if memory.unsure else FreeMemory(counts, memory.available, memory.free, large)
    return Pool(total, used, True, ranks_here, seen)


def own_memory(facts: NodeFacts) -> list[tuple[Gpu, int]]:
    """Each GPU that has memory of its own, with its bytes as nvidia-smi counts them; [] on a GB10."""
    gpus = () if isinstance(facts.gpus, Unknown) else facts.gpus
    return [(gpu, gpu.memory_total) for gpu in gpus if isinstance(gpu.memory_total, int) and gpu.memory_total]


def _cuda_total(gpu: Gpu, size: int) -> LedgerLine:
    """The memory of which engines take their fraction: CUDA's total lacks what the driver reserves."""
    reserved = gpu.memory_reserved
    if isinstance(reserved, int) and 0 <= reserved < size:
        why = f"memory of the GPU: {gib(size)} less {gib(reserved)} of its driver" if reserved else "memory of the GPU"
        return LedgerLine(POOL, size - reserved, Origin.MEASURED, why)
    least, likely, most = (min(kept, size // 20) for kept in _RESERVED)
    why = f"memory of the GPU: {gib(size)} less what its driver keeps and does not say, about {gib(likely)}"
    return LedgerLine(POOL, size - likely, Origin.ASSUMED, why, size - most, size - least)


def driver_retained(facts: NodeFacts) -> int:
    """Bytes that the driver kept of CUDA processes that have gone; the next CUDA process gets them.

    0 while a GPU process lives or when it is not known whether one does: its pages look just the same.
    """
    if isinstance(facts.memory, Unknown) or isinstance(facts.gpu_processes, Unknown) or facts.gpu_processes:
        return 0
    return max(0, facts.memory.unaccounted - UNEXPLAINED_AT_BOOT)


def _discrete(facts: NodeFacts, total: LedgerLine, deployment: str, sharing: int) -> Pool:
    """A GPU with memory of its own: what its processes hold, and nothing of the machine's."""
    known = () if isinstance(facts.gpu_processes, Unknown) else facts.gpu_processes
    used = sum(p.used for p in known if isinstance(p.used, int)) - _replaced(facts, deployment)
    line = LedgerLine(IN_USE, max(0, used), Origin.MEASURED, "processes on this node's GPUs")
    return Pool(total, line, False, sharing)


def _in_use(facts: NodeFacts, memory: Memory, deployment: str) -> LedgerLine:
    taken = memory.total - memory.available
    why = f"{gib(memory.total)} total - {gib(memory.available)} available"
    retained, replaced = driver_retained(facts), _replaced(facts, deployment)
    if memory.page_cache >= GIB:
        why += f", {gib(memory.page_cache)} of page cache counted as free"
    if retained:
        why += f" - {gib(retained)} kept by the driver (no GPU process lives; the next one gets them)"
    if replaced:
        why += f" - {gib(replaced)} of the running ranks that are replaced"
    size = max(0, taken - retained - replaced)
    if memory.unsure:
        ends = max(0, size - memory.unsure), size + memory.unsure
        return LedgerLine(IN_USE, size, Origin.ASSUMED, f"assumed: {why}", *ends)
    return LedgerLine(IN_USE, size, Origin.MEASURED, why)


def _replaced(facts: NodeFacts, deployment: str) -> int:
    """GPU memory of our own running ranks of that name, when they are the only ones of ours on the node.

    So is that of the processes that keep their weights: the plan counts the weights once.
    """
    if isinstance(facts.ranks, Unknown) or isinstance(facts.gpu_processes, Unknown):
        return 0
    names = {rank.deployment for rank in facts.ranks if rank.running and not rank.simulated} | set(facts.keepers)
    sizes = [p.used for p in facts.gpu_processes if isinstance(p.used, int)]
    return sum(sizes) if names == {deployment} else 0


def actions(facts: Sequence[NodeFacts], deployment: str) -> tuple[tuple[Action, ...], ...]:
    """Each thing on every node where it helps; deployment: the one that is planned, whose own ranks are replaced."""
    found = [*(_dropped(node) for node in facts), *_downs(facts, deployment), *_stops(facts)]
    groups: dict[tuple[ActionKind, str], list[Action]] = {}
    for name, action in ((name, action) for name, action in found if action.frees >= _WORTH):
        groups.setdefault((action.kind, name), []).append(action)
    return tuple(tuple(group) for group in groups.values())


def _dropped(facts: NodeFacts) -> tuple[str, Action]:
    cached = 0 if isinstance(facts.memory, Unknown) else facts.memory.page_cache
    lost = f"{gib(cached)} of files on {facts.node} are read from disk again"
    return "", Action(facts.node, ActionKind.DROP_CACHE, DROP, cached, lost)


def _downs(facts: Sequence[NodeFacts], deployment: str) -> Iterator[tuple[str, Action]]:
    """A deployment of ours holds what GPU processes hold on its nodes; where two share a node it is not known."""
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
    """Stop actions by process name: an engine's workers on two nodes are one thing to stop."""
    for node in facts:
        for process, size in _sized(stoppable(node)):
            name = process.name.rpartition("/")[2] or process.name
            lost = f"{name} (pid {process.pid}) on {node.node} ends: {gib(size)}"
            yield name, Action(node.node, ActionKind.STOP, f"sudo kill {process.pid}", size, lost, (process.pid,))


def _sized(processes: Sequence[GpuProcess]) -> list[tuple[GpuProcess, int]]:
    return [(process, process.used) for process in processes if isinstance(process.used, int)]
