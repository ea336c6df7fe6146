"""The host's driver is older than the CUDA of the container or wheel needs.

Detects: the refusal of the container runtime, of an NGC image, of torch, of the CUDA runtime, and of verbs on a
  very old driver.
Why: a CUDA release needs a minimum driver branch. Forward compatibility helps only on data-centre GPUs, not on
  GB10.
Evidence: the sentence with both versions; CUDA errors 35, 803 to 804.
Remedy: a newer driver (GB10: through the DGX Dashboard), or an image for the installed one.
References: gb10.md A2; https://docs.nvidia.com/deploy/cuda-compatibility/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LDRV001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the driver is too old for this CUDA"
CAUSE = "driver-too-old"
SIGNS = (
    line(r"driver on your system is too old(?:.{0,20}found version (?P<found>\d+))?", CERTAIN),
    line(r"unsatisfied condition: (?:cuda|driver) ?>= ?(?P<needed>[\d.]+)", CERTAIN),
    line(r"driver.{0,30}\bonly supports CUDA|old CUDA driver detected|driver supports only CUDA", LIKELY),
    line(r"container was built for NVIDIA Driver Release (?P<needed>[\d.]+) or later", LIKELY),
    near(
        r"container was built for NVIDIA Driver Release",
        r"was detected and compatibility mode is UNAVAILABLE",
        sure=CERTAIN,
        within=3,
    ),
    line(r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver", 0.85),
    line(
        r"forward compatibility was attempted on non supported HW|COMPAT_NOT_SUPPORTED_ON_DEVICE"
        r"|CompatNotSupportedOnDevice",
        LIKELY,
    ),
    line(
        r"nvidia driver is too old|driver (?:version )?\S{0,20} ?is too old|[Pp]lease (?:update|upgrade) your (?:GPU "
        r"|NVIDIA )?driver",
        LIKELY,
    ),
    line(
        r"CUDA initialization failure with error: 35\b|CallRequiresNewerDriver"
        r"|API call is not supported in the installed CUDA driver",
        LIKELY,
    ),
    line(r"undefined symbol: cu(?:TensorMap|Mem|Ctx|GetProc|Kernel|Launch|Library|Green)", POSSIBLE),
    line(r"requires? (?:NVIDIA |GPU |CUDA )?driver (?:version )?(?:>=|at least|newer than) ?\d{3}", LIKELY),
    line(r"ibv_reg_mr\w* failed with error Invalid argument", POSSIBLE),
    near(
        r"\bdriver\b.{0,40}\b(?:4\d\d|5[0-7]\d)(?:\.\d+)*\b",
        r"too old|older than|CUDA 1[23](?:\.\d)? (?:needs|requires)|needs? (?:driver )?(?:>= ?)?5[7-9]\d"
        r"|upgrade the driver|update the driver",
        sure=LIKELY,
        within=3,
    ),
    line(r"NVIDIA.{0,20}(?:驱动|driver).{0,20}(?:版本)?(?:过低|太旧|太老)", LIKELY),
    line(r"unsatisfied condition: cuda|cuda>=\d+\.\d.{0,80}unsatisfied|unsupported driver version", LIKELY),
    line(
        r"\bdriver (?:version )?[1-5]\d\d(?:\.\d+)*\b.{0,40}(?:does not support|doesn.t support|too old"
        r"|only supports?|lacks|older than|cannot run).{0,20}(?:CUDA|PTX|\d)",
        LIKELY,
    ),
    near(
        r"Driver Version: ?(?:[1-4]\d\d|5[0-6]\d)\.",
        r"cu13\d?|CUDA (?:Version: )?13|cuda13|sm_?12",
        sure=0.65,
        within=12,
    ),
)
FIX = (
    (
        "nvidia-smi --query-gpu=driver_version --format=csv,noheader; nvidia-smi | grep -o 'CUDA Version: [0-9.]*'   "
        "# on {node}: what the driver can"
    ),
    (
        "GB10: DGX Dashboard, Update (or: sudo apt update && sudo apt dist-upgrade && sudo fwupdmgr refresh && sudo "
        "fwupdmgr upgrade && sudo reboot)"
    ),
    "or an image whose CUDA is not newer than that version",
)
EXPLAINS = ("no-gpu-visible-in-container",)
