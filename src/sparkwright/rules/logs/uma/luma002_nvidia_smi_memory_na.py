"""NVML reports no memory size on a GPU with unified memory.

Detects: `Not Supported` and `[N/A]` for GB10's memory, and programs that fail on it.
Why: GB10 has no memory of its own, so NVML answers NOT_SUPPORTED. Nothing is broken; a program that insists on the
  number is.
Evidence: the table, the query's output, or the error of NVML's memory call.
Remedy: read /proc/meminfo or torch; update the program that fails.
References: gb10.md E1, A0; https://github.com/leptonai/gpud/pull/1170; https://github.com/Syllo/nvtop/pull/411
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LUMA002"
STATUS = "stable"
SEVERITY = Severity.INFO  # nothing is broken: GB10 has no memory of the GPU's own to tell of
TITLE = "nvidia-smi has no memory figures on unified memory"
CAUSE = "nvidia-smi-memory-na-unified"
SIGNS = (
    line(r"\|\s*N/A\s+\d+C\s+P\d+\s+\d+W /\s+N/A\s*\|\s*Not Supported\s*\|", POSSIBLE),
    line(r"NVIDIA GB10, (?:[^,]{0,20}, ){0,4}(?:\[N/A\]|\[?Not Supported\]?)", POSSIBLE),
    line(r"\bVRAM\b.{0,20}(?:\[N/A\]|Not Supported|Unknown)", LIKELY),
    near(
        r"NVIDIA GB10|\bGB10\b",
        r"Unknown / 0\.0+ GiB|\b0\.0+ GiB.{0,20}VRAM|total_vram=\"?0 B|VRAM.{0,10}\b0 ?(?:B|MiB|GiB)\b",
        sure=LIKELY,
    ),
    line(r"memory\.(?:total|used|free).{0,40}(?:\[N/A\]|Not Supported)", LIKELY),
    line(r"NVML memory APIs? (?:is |are )?not supported|memory APIs? not supported for unified", CERTAIN),
    line(r"(?:failed to get|error getting|getting) (?:device |GPU )?memory(?: info)?.{0,60}Not Supported", CERTAIN),
    line(
        r"nvmlDeviceGetMemoryInfo.{0,60}(?:Not ?Supported|failed|error)|NVML_ERROR_NOT_SUPPORTED.{0,60}memory", CERTAIN
    ),
    near(
        r"nvmlDeviceGetMemoryInfo|DeviceGetMemoryInfo|memory_info|get_gpu_memory|memory\.total",
        r"NVMLError_NotSupported|NVML_ERROR_NOT_SUPPORTED|: Not Supported\b",
        sure=CERTAIN,
        within=8,
    ),
    line(r"NVMLError_NotSupported", POSSIBLE),
    line(r"(?:invalid literal for int\(\)|could not convert string to float).{0,30}(?:\[N/A\]|Not Supported)", CERTAIN),
    line(r"No GPU memory values found", LIKELY),
    near(r"memory\.(?:total|used|free) ?(?:\[MiB\])?,", r"\[N/A\], \[N/A\]", sure=LIKELY, within=3),
    near(r"FB Memory Usage", r"Total\s+: N/A", sure=POSSIBLE, within=2),
    near(
        r"nvidia-smi|\bNVML\b|\bnvtop\b|\bDCGM\b|\bGB10\b",
        r"(?:memory|VRAM|framebuffer).{0,60}(?:\[N/A\]|: N/A| as N/A|Not Supported|cannot be read|不支持)|(?:\[N/A\]"
        r"|Not Supported).{0,40}(?:memory|VRAM)",
        sure=LIKELY,
        within=2,
        unless=r"rdma|nvlink|peer",
    ),
    line(r"\?\? ?/ +\?\? MB\b", CERTAIN),
    near(r"nvidia-smi.{0,60}(?:memory|query-gpu)", r"^\W{0,4}\[N/A\]|Not Supported", sure=LIKELY, within=4),
    line(
        r"(?:nvtop|btop|gpustat|nvitop|jtop|DCGM\w*|netdata|Grafana|exporter)\b.{0,40}(?:\bN/A\b|no memory"
        r"|\b0 (?:MiB|B|GB)\b|Not Supported|missing memory|DEV_FB_USED 0)",
        0.7,
    ),
)
FIX = (
    "awk '/MemTotal|MemAvailable/' /proc/meminfo   # on {node}: the real figures",
    "nvidia-smi --query-compute-apps=pid,process_name,used_gpu_memory --format=csv   # per process it works",
    "update the program that fails (k8s device plugin 0.17.4 and later, gpud, nvtop read the host's memory)",
)
EXPLAINS: tuple[str, ...] = ()
