"""More memory is gone than the GPU's processes hold.

Detects: GPU processes run and tell their sizes, and what no counter explains is more than they and the usual 8 GiB
  take by 10 GiB.
Why: memory of programs that ended before is still with the driver, beside what runs now. Host memory that a program
  pins (offloading of weights or KV) looks the same, and comes back with its end.
Evidence: what is unexplained, and what the processes hold.
Remedy: at the next stop see whether it comes back; else reboot.
References: https://al-engr.com/minimax-sglang-debug.html; https://github.com/thatcooperguy/NVCheckup
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.memory import KEPT_AT_BOOT
from sparkwright.rules.reading import gb10s, known
from sparkwright.rules.rule import Context

CODE = "MEM005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "memory beyond what the GPU's processes hold"

_WORTH_TELLING = 10 * GIB


def check(context: Context) -> Iterator[Finding]:
    for facts in gb10s(context):
        memory, processes = known(facts.memory), known(facts.gpu_processes)
        sizes = [process.used for process in processes or () if isinstance(process.used, int)]
        beyond = memory.unaccounted - sum(sizes) - KEPT_AT_BOOT if memory else 0
        if memory and processes and len(sizes) == len(processes) and beyond > _WORTH_TELLING:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"{gib(beyond)} is gone beside what GPU processes hold",
                f"in no counter {gib(memory.unaccounted)}, GPU processes {gib(sum(sizes))}, "
                f"usual at boot {gib(KEPT_AT_BOOT)}",
                "the driver still keeps memory of programs that ended, or those that run have pinned host memory",
                "stop what runs, look again with sparkwright check, and reboot this node if it stays",
            )
