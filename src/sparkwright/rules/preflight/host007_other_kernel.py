"""A GB10 with a kernel that is not NVIDIA's.

Detects: nvidia-smi shows a GB10, and the kernel's release has no `-nvidia` in it.
Why: DGX OS kernels carry patches for the GB10's NIC, hot-plug and power; what is known of its faults and figures was
  seen on them. Other systems are known to work.
Evidence: the release.
Remedy: nothing, or DGX OS's own kernel where a fault cannot be explained.
References: https://docs.nvidia.com/dgx/dgx-spark/ (DGX OS).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST007"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "a GB10 runs a kernel that is not NVIDIA's"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        kernel = known(facts.kernel)
        if kernel and "-nvidia" not in kernel.release:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the kernel is not that of DGX OS",
                f"uname -r: {kernel.release}; DGX OS has 6.11-6.17 with -nvidia",
                "another system, or a kernel from Ubuntu's own packages",
                "sudo apt install linux-nvidia-hwe-24.04, if NIC, power or hot-plug behave oddly",
            )
