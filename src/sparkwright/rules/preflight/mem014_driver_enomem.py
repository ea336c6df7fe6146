"""The driver has failed to get memory in this boot.

Detects: NV_ERR_NO_MEMORY (0x51) in a GB10's kernel log of this boot.
Why: the driver asked for memory and got none: a memory fraction that leaves too little, or a leak of memory
  descriptors (580.159.03: some 160 a boot). RDMA registration then fails on this node until all nodes are started anew
  from cold.
Evidence: the line, how often, and when.
Remedy: a lower memory fraction; after many of them a cold start of all nodes.
References: forums.developer.nvidia.com 363989; a two-node log with _memdescAllocInternal (0.85 too high, 0.75 held)
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.kernel_notes import notes, told
from sparkwright.rules.reading import gpu_may_be_used
from sparkwright.rules.rule import Context

CODE = "MEM014"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the driver has run out of memory descriptors or memory"

_ENOMEM = re.compile(r"NV_ERR_NO_MEMORY|\(0x0*51\)")


def check(context: Context) -> Iterator[Finding]:
    for facts, found in notes(context, _ENOMEM):
        if gpu_may_be_used(context, facts.node):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the GPU driver has failed to get memory since boot",
                told(found),
                "the memory fraction leaves too little, or the driver leaks memory descriptors (580.159.03)",
                "lower serving.memory_fraction to 0.75; if ibv_reg_mr fails now, start all nodes cold",
            )
