"""Commands that save a failed deployment's evidence from a node: a bounded number of bytes of everything."""

from sparkwright.domain.command import Command
from sparkwright.domain.recipe import Runtime
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

TIMEOUT = 8.0
_KERNEL_LINES = "5000"
_BUSY = "exec nvidia-smi dmon -s u -c 3"


def kernel_log() -> Command:
    """The kernel's last lines since the node started; nothing where the user may not read them."""
    return script(_sh("kernel"), _KERNEL_LINES, timeout=20)


def versions() -> Command:
    """Versions of the kernel and the loaded driver."""
    return script(_sh("show", "versions"), timeout=TIMEOUT)


def utilization() -> Command:
    """Three seconds of `nvidia-smi dmon`: SM and memory utilization, a row a second."""
    return script(_BUSY, timeout=10)


def read_clock() -> Command:
    """The node's clock: seconds since the epoch with a fraction, and its zone (`+0200`)."""
    return script("exec date '+%s.%N %z'", timeout=10)


def rank_log(runtime: str, handle: str, head: int, tail: int) -> Command:
    """The first `head` and the last `tail` bytes. handle: container, or folder of the processes."""
    text = _sh("cut", "docker") if runtime == Runtime.DOCKER else _sh("cut", "process")
    return script(text, handle, str(head), str(tail), timeout=TIMEOUT)


def memory() -> Command:
    """Sections meminfo, vmstat, pressure, buddyinfo, processes (no arguments: they may hold keys)."""
    return script(_sh("show", "memory"), timeout=TIMEOUT)


def read_gpu() -> Command:
    return script(_sh("gpu"), timeout=TIMEOUT)
