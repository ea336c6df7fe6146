"""The CUDA library and the loaded kernel module are of different versions.

Detects: the version in libcuda's file name is not that of the loaded kernel module.
Why: the driver was updated and the machine not rebooted: every CUDA program, also in new containers (they get this
  library), ends with `driver/library version mismatch`.
Evidence: both versions.
Remedy: reboot.
References: https://docs.nvidia.com/deploy/ (NVML: driver/library version mismatch).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import library_differs
from sparkwright.rules.reading import gpu_nodes
from sparkwright.rules.rule import Context

CODE = "DRV008"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "libcuda and the loaded driver are of different versions"


def check(context: Context) -> Iterator[Finding]:
    for facts in gpu_nodes(context):
        pair = library_differs(facts)
        if pair:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "driver updated and not rebooted: CUDA does not start",
                f"loaded kernel module {pair[0]}, libcuda {pair[1]}",
                "the library on the disk is newer than the module that runs; CUDA refuses such a pair",
                "sudo systemctl reboot --no-block, all nodes together; then sparkwright check",
            )
