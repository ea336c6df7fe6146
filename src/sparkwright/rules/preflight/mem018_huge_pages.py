"""Memory is reserved as huge pages.

Detects: HugePages_Total of a GB10 reserves 1 GiB or more.
Why: CUDA on a GB10 then takes only the free huge pages for what it can have, and nothing else can use them.
Evidence: what is reserved and free of it.
Remedy: give them back.
References: https://docs.nvidia.com/dgx/dgx-spark/known-issues.html (with HugePages_Total set, only free huge pages
  count).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM018"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "memory is reserved as huge pages"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        memory = known(facts.memory)
        if memory and memory.huge_pages >= GIB:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"{gib(memory.huge_pages)} is reserved as huge pages",
                f"huge pages: {gib(memory.huge_free)} free of {gib(memory.huge_pages)}",
                "vm.nr_hugepages or the kernel's command line sets them, from a guide for other machines",
                "sudo sysctl -w vm.nr_hugepages=0, and take the setting out of /etc/sysctl.d",
            )
