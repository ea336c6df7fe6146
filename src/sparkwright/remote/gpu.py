"""nvidia-smi as asked on a node. No units are asked away and headers are kept: the answer says itself what it is."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import SHOW, script

_HEALTH = ("temperature.gpu", "power.draw", "clocks.sm", "utilization.gpu")
GPU_FIELDS = ("name", "driver_version", "compute_cap", "memory.total", *_HEALTH)
PROCESS_FIELDS = ("pid", "process_name", "used_gpu_memory")
# A driver that waits for a dead GSP answers after some 6 s for each call (field guide, dmesg failure set).
_TIMEOUT = 20.0
_QUERY = 'command -v nvidia-smi >/dev/null 2>&1 || exit 127; LC_ALL=C exec nvidia-smi "$@"'
_DRIVER = """
show module "$R/proc/driver/nvidia/version"
printf '\\n@@ nvidia-smi\\n'
command -v nvidia-smi >/dev/null 2>&1 || exit 127
LC_ALL=C nvidia-smi -q
"""


def gpus() -> Command:
    """CSV with a header, one row for each GPU."""
    return script(_QUERY, f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv", timeout=_TIMEOUT)


def processes() -> Command:
    """CSV with a header, one row for each process that holds GPU memory."""
    return script(_QUERY, f"--query-compute-apps={','.join(PROCESS_FIELDS)}", "--format=csv", timeout=_TIMEOUT)


def driver() -> Command:
    """Sections `module` (the loaded kernel module) and `nvidia-smi` (the long listing)."""
    return script(SHOW + _DRIVER, timeout=_TIMEOUT)
