"""The image's compatibility libcuda is loaded instead of the driver's.

Detects: CUDA error 803 at the first call, in a container with its own libcuda.
Why: the image puts /usr/local/cuda/compat before the driver libraries that the container runtime mounts; that libcuda
  does not fit the kernel module. The same error follows when user-space driver and module differ on the host.
Evidence: Error 803.
Remedy: Put the mounted driver first, or start with --gpus all.
References: https://github.com/gpustack/gpustack/issues/4678; https://github.com/vllm-project/vllm/issues/33447
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCUD008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the image's compatibility libcuda is loaded instead of the driver's"
CAUSE = "cuda-compat-libs-shadow-driver"
SIGNS = (
    line(r"system has unsupported display driver / cuda driver combination", LIKELY),
    line(
        r"cudaErrorSystemDriverMismatch|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|\berror 803\b|\berror: 803\b"
        r"|error code:? 803\b",
        LIKELY,
    ),
    line(
        r"(?:cuda[-/]compat\b|compat/libcuda|cuda-compat\.conf|compat(?:ibility)? (?:libs?|libraries"
        r"|libcuda|libcuda\.so)).{0,140}(?:shadow|ahead of|instead of|overrid|before|preced|wins|first)",
        CERTAIN,
    ),
    line(
        r"(?:shadow|overrid|hid(?:es|den)).{0,80}(?:cuda[-/ ]compat|compat (?:libs?|libraries|libcuda))",
        LIKELY,
    ),
)
FIX = (
    (
        "docker exec <container> sh -c 'ldconfig -p | grep libcuda.so; cat /etc/ld.so.conf.d/*compat*'   # "
        "which libcuda comes first"
    ),
    "start it with -e LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib, or with --gpus all",
    "or in a derived image: rm -f /etc/ld.so.conf.d/*compat*.conf && ldconfig",
    "nvidia-smi   # on the host: if this fails too, module and libraries of the driver differ; reboot {node}",
)
EXPLAINS = ()
