"""One node's pool of memory: how much there is, what is in use now, and what the next engine can have."""

from dataclasses import dataclass

from sparkwright.domain.facts import Memory, NodeFacts, Unknown
from sparkwright.domain.ledger import IN_USE, LedgerLine, Origin
from sparkwright.domain.units import GIB, gib

POOL = "pool"
# A freshly booted GB10 has 5.4-7.6 GiB that no counter explains (firmware, carve-outs; fixtures of field guide A1).
# Only what exceeds them can be pages that the driver kept of an engine that has gone.
UNEXPLAINED_AT_BOOT = 8 * GIB


@dataclass(frozen=True, slots=True)
class Pool:
    """total: what there is. used: what others hold. unified: CPU and GPU share it. sharing: ranks that live in one."""

    total: LedgerLine
    used: LedgerLine
    unified: bool = True
    sharing: int = 1

    @property
    def free(self) -> int:
        return self.total.bytes - self.used.bytes


def pool(facts: NodeFacts, deployment: str, ranks_here: int) -> Pool | Unknown:
    """The memory that ranks of that deployment will find; its own running ranks are replaced, so they count as free."""
    sizes = [] if isinstance(facts.gpus, Unknown) else [g.memory_total for g in facts.gpus]
    own = [size for size in sizes if isinstance(size, int) and size]
    if own:
        return _discrete(facts, min(own), deployment, -(-ranks_here // len(own)))
    if isinstance(facts.memory, Unknown):
        return Unknown(facts.memory.raw, facts.memory.why)
    total = LedgerLine(POOL, facts.memory.total, Origin.MEASURED, "MemTotal of this node")
    return Pool(total, _in_use(facts, facts.memory, deployment), True, ranks_here)


def driver_retained(facts: NodeFacts) -> int:
    """Bytes that the driver kept of CUDA processes that have gone; the next CUDA process gets them (field guide A1).

    0 while a GPU process lives or when it is not known whether one does: its pages look just the same.
    """
    if isinstance(facts.memory, Unknown) or isinstance(facts.gpu_processes, Unknown) or facts.gpu_processes:
        return 0
    return max(0, facts.memory.unaccounted - UNEXPLAINED_AT_BOOT)


def _discrete(facts: NodeFacts, total: int, deployment: str, sharing: int) -> Pool:
    """A GPU with memory of its own: what its processes hold, and nothing of the machine's."""
    known = () if isinstance(facts.gpu_processes, Unknown) else facts.gpu_processes
    used = sum(p.used for p in known if isinstance(p.used, int)) - _replaced(facts, deployment)
    line = LedgerLine(IN_USE, max(0, used), Origin.MEASURED, "processes on this node's GPUs")
    return Pool(LedgerLine(POOL, total, Origin.MEASURED, "memory of the GPU"), line, False, sharing)


def _in_use(facts: NodeFacts, memory: Memory, deployment: str) -> LedgerLine:
    taken = memory.total - memory.available
    why = f"{gib(memory.total)} total - {gib(memory.available)} available"
    retained, replaced = driver_retained(facts), _replaced(facts, deployment)
    if memory.cached >= GIB:
        why += f", {gib(memory.cached)} of page cache counted as free"
    if retained:
        why += f" - {gib(retained)} kept by the driver (no GPU process lives; the next one gets them)"
    if replaced:
        why += f" - {gib(replaced)} of the running ranks that are replaced"
    return LedgerLine(IN_USE, max(0, taken - retained - replaced), Origin.MEASURED, why)


def _replaced(facts: NodeFacts, deployment: str) -> int:
    """GPU memory of our own running ranks of that name, when they are the only ones of ours on the node."""
    if isinstance(facts.ranks, Unknown) or isinstance(facts.gpu_processes, Unknown):
        return 0
    names = {rank.deployment for rank in facts.ranks if rank.running and not rank.simulated}
    sizes = [p.used for p in facts.gpu_processes if isinstance(p.used, int)]
    return sum(sizes) if names == {deployment} else 0
