"""Little memory is left before anything of ours runs.

Detects: no rank of ours runs on a GB10, and MemAvailable is below 8 GiB.
Why: nothing can be started, and the machine is near the point (4 GiB) where GB10 machines froze.
Evidence: MemAvailable, and the biggest GPU process.
Remedy: stop what holds the memory.
References: https://github.com/thatcooperguy/NVCheckup (8 GiB warns, 4 GiB is critical).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.memory import biggest_process
from sparkwright.rules.reading import idle, known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM017"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "little memory is left, and no rank of ours runs"

_LITTLE = 8 * GIB


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        memory = known(facts.memory)
        if memory and memory.available < _LITTLE and idle(facts):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"only {gib(memory.available)} is available",
                f"MemAvailable {gib(memory.available)} of {gib(memory.total)}, no rank of ours runs",
                "other programs hold the memory, or the driver keeps it (MEM004)",
                biggest_process(facts) or "ps aux --sort=-rss | head shows who holds it",
            )
