"""This machine: its clocks, its user, and what is recorded of it with each benchmark."""

import asyncio
import os
import platform
import pwd
import socket
import time
from functools import cache
from pathlib import Path

from sparkwright import __version__
from sparkwright.domain.incident import Uptime


class SystemClock:
    """Implements ports.Clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> Uptime:
        """Raises OSError where there is no /proc, as on a Mac; only nodes are asked."""
        return Uptime(boot_id(), seconds_since_boot())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def seconds_since_boot() -> float:
    """A clock that runs on while the machine sleeps, and that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


class MachineCallers:
    """Implements ports.Callers: a mark is `BOOT PID-NAMESPACE PID START`, from /proc; START in ticks since the boot."""

    def own_mark(self) -> str:
        return _process_mark(os.getpid())

    def has_ended(self, mark: str) -> bool:
        *place, pid, _ = words if len(words := mark.split()) == 4 else ("", "", "", "")
        here = self.own_mark().split()[:2]
        return bool(here) and place == here and pid.isdecimal() and _process_mark(int(pid)) != mark


def _process_mark(pid: int) -> str:
    """The mark of a process; '' if there is none, or it is a zombie, or this machine has no /proc."""
    try:
        place = f"{boot_id()} {Path('/proc/self/ns/pid').readlink()}"
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return "" if fields[0] in ("Z", "X") else f"{place} {pid} {fields[19]}"
    except (OSError, IndexError):
        return ""


# What each time daemon leaves while it is in step (systemd-timesyncd, chrony, ntpd): nothing is started to ask them.
_SYNCED = {
    "systemd-timesyncd": "/run/systemd/timesync/synchronized",
    "chrony": "/run/chrony/chronyd.pid",
    "ntpd": "/run/ntpd.pid",
}


def client() -> str:
    """The name and versions of the program that sends requests and takes the times."""
    return f"sparkwright {__version__}, Python {platform.python_version()}"


def describe_host() -> str:
    """Name, cores, architecture."""
    cores = len(os.sched_getaffinity(0))
    return f"{socket.gethostname()}: {cores} core{'s' if cores > 1 else ''}, {platform.machine()}"


def describe_clock() -> str:
    """Latencies are of the monotonic clock; only the start of a run is of the other."""
    resolution = time.get_clock_info("perf_counter").resolution
    keeper = next((name for name, path in _SYNCED.items() if Path(path).exists()), "")
    kept = f"date synchronised by {keeper}" if keeper else "whether its date is synchronised is unknown"
    return f"monotonic, {resolution * 1e9:.0f} ns; {kept}"


def whoami() -> str:
    """`user@host` of this machine, for the audit log and leases."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return f"{user}@{socket.gethostname()}"
