"""What a diagnosis asks of a node beside the ranks' logs."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

_KERNEL_LINES = "5000"
_KERNEL = r"""
journalctl -k -b -n "$1" -o short-iso --no-pager -q 2>/dev/null && exit 0
dmesg --time-format iso 2>/dev/null | tail -n "$1"
"""
_BUSY = "exec nvidia-smi dmon -s u -c 3"


def kernel_log() -> Command:
    """The kernel's last lines since the node started; nothing where the user may not read them."""
    return script(_KERNEL, _KERNEL_LINES, timeout=20)


def utilization() -> Command:
    """Three seconds of `nvidia-smi dmon`: SM and memory utilization, a row a second."""
    return script(_BUSY, timeout=10)


def clock() -> Command:
    """The node's clock: seconds since the epoch with a fraction."""
    return script("exec date +%s.%N", timeout=10)
