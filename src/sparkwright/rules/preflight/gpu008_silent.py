"""A GB10 on the PCI bus that nvidia-smi cannot show.

Detects: the PCI bus has NVIDIA's GB10 (10de:2e12), and nvidia-smi was asked and shows no GPU. Where the kernel log
  tells why, DRV007 or GPU004 say so.
Why: the machine has its GPU and nothing can use it: the driver is not loaded, or the GPU did not start.
Evidence: the PCI function, and nvidia-smi's own first line.
Remedy: see what the driver says; finish an update that was cut short.
References: https://github.com/thatcooperguy/NVCheckup (the PCI id tells a dead driver from a missing GPU).
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NOT_ASKED, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import GB10_PCI, gpu_nodes, known
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "GPU008"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the GPU is there and does not answer"


def check(context: Context) -> Iterator[Finding]:
    for facts in gpu_nodes(context):
        board = known(facts.board)
        functions = known(board.nvidia) if board else None
        address = next((address for address, kind in (functions or {}).items() if kind == GB10_PCI), "")
        if address and not facts.gpus and facts.gpus != NOT_ASKED:
            said = (facts.gpus.raw or facts.gpus.why) if isinstance(facts.gpus, Unknown) else "no GPU listed"
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the GPU is in the machine and does not answer",
                f"{address} is {GB10_PCI}; nvidia-smi: {said}",
                "the driver is not loaded, or driver and GPU firmware are not a pair",
                f"sudo dmesg | grep -iE 'nvrm|xid'; then the update of {DASHBOARD}",
            )
