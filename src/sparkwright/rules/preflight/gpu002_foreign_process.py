"""A process that is not ours holds GPU memory.

Detects: nvidia-smi lists a compute process with 256 MiB or more (or of unknown size), and no rank of ours runs on the
  node (with one, the processes may be its own and are not blamed).
Why: its memory comes out of the same pool as weights and KV cache.
Evidence: name, pid and size of each.
Remedy: stop it, or keep it and lower the memory fraction.
References: https://docs.nvidia.com/dgx/dgx-spark/known-issues.html (nvidia-smi tells the processes' memory, not
  the total); https://github.com/aidendle94/sparkrun-recipes
"""

from collections.abc import Iterator

from sparkwright.domain.facts import GpuProcess, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import MIB, gib
from sparkwright.rules.reading import gpu_may_be_used, known, running
from sparkwright.rules.rule import Context

CODE = "GPU002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a foreign process holds GPU memory"

# Desktops and monitors hold a few tens of MiB.
_WORTH_TELLING = 256 * MIB


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values():
        found = _foreign(facts) if gpu_may_be_used(context, facts.node) else []
        if found:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"{_names(found)} {'use' if len(found) > 1 else 'uses'} the GPU's memory",
                ", ".join(f"{p.name} (pid {p.pid}) {_size(p)}" for p in found),
                "another engine or program shares the one memory pool",
                f"stop it: sudo kill {' '.join(str(p.pid) for p in found)}   # first see whose it is: ps -fp PID",
            )


def _foreign(facts: NodeFacts) -> list[GpuProcess]:
    ours = running(facts)
    if ours is None or any(not rank.simulated for rank in ours):
        return []
    listed = known(facts.gpu_processes) or ()
    return [p for p in listed if not isinstance(p.used, int) or p.used >= _WORTH_TELLING]


def _names(found: list[GpuProcess]) -> str:
    return ", ".join(dict.fromkeys(p.name.rpartition("/")[2] or p.name for p in found))


def _size(process: GpuProcess) -> str:
    return gib(process.used) if isinstance(process.used, int) else "size not told"
