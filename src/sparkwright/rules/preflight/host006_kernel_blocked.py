"""Kernel 7.0.0-1019 without kho=off.

Detects: release 7.0.0-1019-nvidia, and no `kho=off` on its command line. A warning; an override for a rank with RDMA.
Why: its kexec handover reserves contiguous memory that it does not count; registering RDMA buffers then fails with
  ENOMEM as soon as memory is short, which is always so when a large model is loaded. NVIDIA asked to hold that kernel
  off.
Evidence: the release, and the command line's lack of the option.
Remedy: add kho=off and reboot, or boot a 6.17 kernel.
References: https://github.com/christopherowen/dgx-spark-networking; forums.developer.nvidia.com (DGX Spark, kernel
  7.0.0-1019).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, nodes, specs_on
from sparkwright.rules.rule import Context

CODE = "HOST006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "kernel 7.0.0-1019 loses memory that RDMA needs"

_BLOCKED = re.compile(r"7\.0\.0-1019-nvidia.*")


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        kernel = known(facts.kernel)
        if kernel and _BLOCKED.fullmatch(kernel.release) and "kho=off" not in kernel.cmdline.split():
            yield Finding(
                CODE,
                Severity.OVERRIDE if any(spec.rdma for spec in specs_on(context, facts.node)) else SEVERITY,
                facts.node,
                f"kernel {kernel.release} runs without kho=off",
                f"uname -r: {kernel.release}; /proc/cmdline has no kho=off",
                "this kernel holds back contiguous memory; ibv_reg_mr then fails with ENOMEM under pressure",
                "add kho=off to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, sudo update-grub, sudo reboot; "
                "or boot a 6.17 kernel",
            )
