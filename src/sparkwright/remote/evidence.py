"""What is saved of a node when its deployment has failed: at most so many bytes of everything."""

from sparkwright.domain.command import Command
from sparkwright.domain.recipe import Runtime
from sparkwright.remote.host import SHOW, script

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
    """The node's clock: seconds since the epoch with a fraction, and its zone (`+0200`)."""
    return script("exec date '+%s.%N %z'", timeout=10)


# The beginning tells how it was started, the end why it ended.
_CUT = r"""
cut_out() {
  n=$(wc -c <"$1")
  if [ "$n" -le $(($2 + $3)) ]; then cat "$1"; return; fi
  head -c "$2" "$1"; printf '\n... %s bytes left out ...\n' "$((n - $2 - $3))"; tail -c "$3" "$1"
}
"""
_PROCESS = (
    _CUT
    + r"""
exec 2>/dev/null; d=$(x "$1"); cut_out "$d/log" "$2" "$3"
[ ! -s "$d/memory/log" ] || cut_out "$d/memory/log" "$2" "$3"
"""
)
# A log of some hundred megabytes is not read whole: the daemon finds its last lines from the end.
_DOCKER = (
    _CUT
    + r"""
t=$(mktemp -p /dev/shm 2>/dev/null || mktemp) || exit 1; trap 'rm -f "$t"' EXIT
docker logs "$1" 2>&1 | head -c "$(($2 + $3 + 1))" >"$t"
if [ "$(wc -c <"$t")" -le $(($2 + $3)) ]; then cat "$t"; exit; fi
head -c "$2" "$t"; printf '\n... some of the log is left out ...\n'
docker logs --tail 50000 "$1" 2>&1 | tail -c "$3"
"""
)
_MEMORY = r"""
show meminfo "$(at /proc/meminfo)"
show vmstat "$(at /proc/vmstat)"
show pressure "$R/proc/pressure/memory"
show buddyinfo "$(at /proc/buddyinfo)"
printf '\n@@ processes\n'
LC_ALL=C ps -eo pid=,ppid=,stat=,rss=,etimes=,wchan:24=,comm= --sort=-rss 2>/dev/null | head -n 60
exit 0
"""
_GPU = r"""
LC_ALL=C nvidia-smi 2>&1
LC_ALL=C nvidia-smi -q 2>&1 | head -c 60000
exit 0
"""
TIMEOUT = 8.0


def rank_log(runtime: str, handle: str, head: int, tail: int) -> Command:
    """The first `head` and the last `tail` bytes. handle: container, or folder of the processes."""
    text = _DOCKER if runtime == Runtime.DOCKER else _PROCESS
    return script(text, handle, str(head), str(tail), timeout=TIMEOUT)


def memory() -> Command:
    """Sections meminfo, vmstat, pressure, buddyinfo, processes (no arguments: they may hold keys)."""
    return script(SHOW + _MEMORY, timeout=TIMEOUT)


def gpu() -> Command:
    return script(_GPU, timeout=TIMEOUT)
