"""The cable was plugged in while the machine ran: the NIC may be capped at 13 Gb/s.

Detects: the kernel saw a cable being plugged in more than 30 s after boot, and an RDMA port is ACTIVE.
Why: a ConnectX-7 that comes onto the bus of a running GB10 stays in a power state with which the link says 200 Gb/s,
  ping is fine, and 13 to 14 Gb/s is all it moves, whatever one tunes (NCCL: 2.8 GB/s).
Evidence: the kernel's line and how long after boot it came.
Remedy: reboot all nodes with the cable in; some needed a minute without mains power. `check --deep` measures it.
References: https://github.com/guardkit/dgx-spark; NVIDIA developer forum 370035, 363461, 373538, 383649
"""

import re
from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.host_facts import KernelNote
from sparkwright.rules.fabric import rails, wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RDMA001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the cable was plugged in while the machine ran"

_PLUGGED = re.compile(r"\bcable plug(ged|in)\b", re.IGNORECASE)
_BOOTING = 30.0


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        late = _late(facts)
        if late and rails(facts):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the link may be capped at 13 Gb/s: hot-attached cable",
                f"kernel, {late.last:.0f} s after boot: {late.latest or late.text}",
                "a NIC that is attached while the machine runs keeps a power cap that the link's state does not show",
                "sparkwright check --deep measures it; if it is so, reboot all nodes together with the cable in "
                "(if that does not help: a minute without mains power)",
            )


def _late(facts: NodeFacts) -> KernelNote | None:
    log = known(facts.kernel_log)
    notes = log.matching(_PLUGGED) if log else ()
    timed = [(note.last, note) for note in notes if note.last is not None and note.last > _BOOTING]
    return max(timed, key=lambda pair: pair[0])[1] if timed else None
