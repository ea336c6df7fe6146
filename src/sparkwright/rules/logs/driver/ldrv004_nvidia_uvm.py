"""The nvidia_uvm module or its device nodes are missing or stale.

Detects: CUDA's unknown error at initialization, missing /dev/nvidia-uvm.
Why: CUDA needs nvidia_uvm. After suspend or a driver update the loaded module is stale; in rootless containers its
  device nodes are not passed in. nvidia-smi works without it.
Evidence: `CUDA unknown error` while nvidia-smi is fine.
Remedy: load the module again; pass its nodes into the container.
References: https://github.com/pytorch/pytorch/issues/49081; gb10.md A5
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LDRV004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "nvidia-uvm is missing or stale"
CAUSE = "nvidia-uvm-missing-or-stale"
SIGNS = (
    line(r"CUDA unknown error - this may be due to an incorrectly set up environment", LIKELY),
    line(
        r"/dev/nvidia-uvm(?:-tools)?\b.{0,40}(?:no such file|not found|missing|does not exist|cannot"
        r"|operation not permitted)",
        CERTAIN,
    ),
    line(r"(?:open|stat|chmod)[^/]{0,30}/dev/nvidia-uvm", LIKELY),
    line(r"(?:modprobe|could not insert|FATAL).{0,40}nvidia[-_]uvm", LIKELY),
    line(
        r"cuInit.{0,40}(?:CUDA_ERROR_UNKNOWN|\b999\b|unknown error)|driver library init failure: 999"
        r"|CUDA_ERROR_UNKNOWN: unknown error",
        LIKELY,
    ),
    line(r"(?:rmmod|modprobe -r|rmmod -f) nvidia[-_]uvm", LIKELY),
    near(r"nvidia[-_]uvm", r"suspend|resume|stale|missing|not loaded|reload|bad state|unload", sure=LIKELY, within=3),
    line(r"cuda runtime error \((?:999|30)\) : unknown error|error=(?:999|30) : unknown error", LIKELY),
    line(r"code=999\(cudaErrorUnknown\)|CUDA error: unknown error", POSSIBLE),
    line(r"(?:could not insert|modprobe.{0,20}|FATAL.{0,30})\W{0,4}nvidia[-_]\w{0,12}uvm", LIKELY),
    line(r"cudaGetDeviceCount (?:returned|failed with|->) ?(?:30|999)\b", LIKELY),
    line(
        r"(?:could not|cannot|unable to|failed to) (?:load|initiali[sz]e|open) (?:the )?(?:NVIDIA )?"
        r"(?:UVM\b|unified memory kernel)",
        0.85,
    ),
)
FIX = (
    "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm   # on {node}; nothing may use the GPU; else reboot",
    "sudo nvidia-modprobe -u -c=0; ls -l /dev/nvidia-uvm*   # the device nodes",
    (
        "container: --device nvidia.com/gpu=all (CDI), or --gpus all with the NVIDIA runtime; sudo nvidia-ctk cdi "
        "generate --output=/etc/cdi/nvidia.yaml"
    ),
)
EXPLAINS = ("no-gpu-visible-in-container",)
