"""What the memory rules read from a ledger."""

from sparkwright.domain.facts import GpuProcess, NodeFacts
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import known

# A freshly booted GB10 has 5.4-7.6 GiB that no counter explains: firmware and carve-outs (field guide A1).
KEPT_AT_BOOT = 8 * GIB


def arithmetic(ledger: MemoryLedger) -> str:
    """`121.6 GiB pool - 5.0 GiB in use now - 69.4 GiB weights - ... = 3.1 GiB`."""
    parts = "".join(f" - {gib(line.bytes)} {line.name}" for line in ledger.lines if line.known)
    parts += "".join(f" - {name} (not known)" for name in ledger.unknown)
    return f"{gib(ledger.pool.bytes)} pool{parts} = {gib(ledger.left)}"


def biggest_process(facts: NodeFacts | None) -> str:
    """`stop VLLM::EngineCore (pid 12, 9.0 GiB)`, or ''."""
    listed = known(facts.gpu_processes) or () if facts else ()
    sized = [(p.used, p) for p in listed if isinstance(p.used, int)]
    return _stop(*max(sized, key=lambda pair: pair[0])) if sized else ""


def _stop(used: int, process: GpuProcess) -> str:
    return f"stop {process.name} (pid {process.pid}, {gib(used)})"
