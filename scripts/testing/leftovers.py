"""The leftovers of a test run: processes, network namespaces and devices, containers.

This process becomes the reaper of its descendants, so a daemon that left its parent is still found as ours and a
colleague's process is not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE = 5.0


@dataclass(frozen=True)
class Traces:
    """The leftovers that a process tree does not show."""

    namespaces: frozenset[str] = field(default_factory=lambda: names_in("/run/netns"))
    devices: frozenset[str] = field(default_factory=lambda: network_devices())
    containers: frozenset[str] = field(default_factory=lambda: containers())

    def since(self, before: Traces) -> list[str]:
        return [
            *(f"network namespace {name}" for name in sorted(self.namespaces - before.namespaces)),
            *(f"network device {name}" for name in sorted(self.devices - before.devices)),
            *(f"container {name}" for name in sorted(self.containers - before.containers)),
        ]


def adopt_descendants() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(ours: Collection[int]) -> None:
    """The ended ones: the nodes of one run leave thousands, and whatever looks through /proc reads them all."""
    for pid in children_of(os.getpid()):
        if pid not in ours:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def names_in(folder: str) -> frozenset[str]:
    return frozenset(path.name for path in Path(folder).glob("*"))


def network_devices() -> frozenset[str]:
    """The devices without veth pairs: those of a testbed that was up before get new names when its nodes restart."""
    return frozenset(name for name in names_in("/sys/class/net") if not name.startswith("veth"))


def containers() -> frozenset[str]:
    """The containers of the machine's own dockerd; the testbed's ends with its process tree."""
    if not (shutil.which("docker") and Path("/var/run/docker.sock").exists()):
        return frozenset()
    answer = subprocess.run(["docker", "ps", "--format", "{{.Names}}"], capture_output=True, text=True)
    return frozenset(answer.stdout.split())


def descendants() -> dict[int, str]:
    """Living ones only, pid -> command line. Walks down from this process: a machine that is busy with other runs has
    thousands of processes."""
    found: list[int] = []
    queue = children_of(os.getpid())
    while queue:
        found.append(pid := queue.pop())
        queue += children_of(pid)
    return {pid: command_line(pid) for pid in found if is_alive(pid)}


def children_of(pid: int) -> list[int]:
    """Its children, as all its threads list them; none once it has ended."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError):  # it has ended since its parent listed it
        for task in list(Path(f"/proc/{pid}/task").iterdir()):
            with contextlib.suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def command_line(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "(just ended)"
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()[:150] or "(no command line)"


def wait_for_end(seconds: float = GRACE) -> dict[int, str]:
    """Anyone who is still here after the grace was left running."""
    end = time.monotonic() + seconds
    while (alive := descendants()) and time.monotonic() < end:
        reap_children()
        time.sleep(0.1)
    return alive


def reap_children() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def stop_descendants() -> None:
    for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if not wait_for_end(patience):
            return
