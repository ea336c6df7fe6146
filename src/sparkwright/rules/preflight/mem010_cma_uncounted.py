"""Contiguous memory that is reserved and not counted.

Detects: /proc/meminfo of a GB10 says CmaTotal 0 and CmaFree more than 0.
Why: it is the mark of a kernel (7.0.0-1019) that holds back memory without counting it; registering RDMA buffers then
  fails with ENOMEM under pressure.
Evidence: both counters.
Remedy: kho=off on the kernel's command line, or a 6.17 kernel.
References: https://github.com/christopherowen/dgx-spark-networking; forums.developer.nvidia.com (DGX Spark, kernel
  7.0.0-1019)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM010"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "contiguous memory is reserved and not counted"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        memory = known(facts.memory)
        if memory and memory.cma_free > memory.cma_total == 0:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "contiguous memory is held back and not counted",
                f"/proc/meminfo: CmaTotal 0 kB, CmaFree {memory.cma_free // 1024} kB",
                "the kernel's kexec handover reserves it; ibv_reg_mr then fails with ENOMEM under pressure",
                "add kho=off to the kernel's command line and reboot, or boot a 6.17 kernel",
            )
