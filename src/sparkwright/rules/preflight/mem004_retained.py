"""Memory that no process holds and no counter explains.

Detects: on a GB10 more than 10 GiB that no counter of /proc/meminfo explains while nvidia-smi lists no GPU process.
Why: the driver keeps pages of CUDA programs that have ended. One side: the next CUDA program gets them (96 GiB were
  had with 40 GiB available), so the plan counts them as free. Other side: engines size their KV pool by what is
  available and get a smaller one at each start, and some saw only a reboot bring them back.
Evidence: the amount, and what is available.
Remedy: start and see; reboot if the KV pool shrinks from start to start.
References: https://al-engr.com/minimax-sglang-debug.html (33 GB for each killed container); field reports of driver
  590
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.memory import KEPT_AT_BOOT
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "memory that no process holds"

_WORTH_TELLING = KEPT_AT_BOOT + 2 * GIB


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        memory = known(facts.memory)
        if memory and known(facts.gpu_processes) == () and memory.unaccounted > _WORTH_TELLING:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"{gib(memory.unaccounted)} is held by no process",
                f"in no counter {gib(memory.unaccounted)}, available {gib(memory.available)}, no GPU process; "
                f"up to {gib(KEPT_AT_BOOT)} is normal",
                "the driver keeps memory of CUDA programs that have ended; the next one may get it or not",
                "start the model and compare its KV pool with the plan; if it is smaller, reboot this node",
            )
