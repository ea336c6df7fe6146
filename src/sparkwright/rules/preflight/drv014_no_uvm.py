"""The device node of unified memory is missing.

Detects: /dev/nvidiactl is there, /dev/nvidia-uvm is not, and nvidia-smi shows a GPU.
Why: nvidia-smi works without it, CUDA does not. Mostly nothing has used CUDA since boot, and the first use makes it;
  where nobody may make it, programs and containers end with error 999 or `no CUDA-capable device`.
Evidence: the device nodes that are there.
Remedy: load the module; nvidia-modprobe makes the nodes.
References: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ (device node verification).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import gpu_nodes, known
from sparkwright.rules.rule import Context

CODE = "DRV014"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "/dev/nvidia-uvm is missing"


def check(context: Context) -> Iterator[Finding]:
    for facts in gpu_nodes(context):
        board = known(facts.board)
        devices = known(board.devices) if board else None
        if known(facts.gpus) and devices and "nvidiactl" in devices and "nvidia-uvm" not in devices:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "CUDA has no /dev/nvidia-uvm yet",
                f"/dev: {', '.join(devices)}",
                "nothing has used CUDA since boot, or the module nvidia_uvm cannot be loaded",
                "sudo nvidia-modprobe -u -c=0   # and: sudo systemctl enable --now nvidia-persistenced",
            )
