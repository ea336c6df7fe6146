"""Namespaces for a test worker: its own processes, mounts, network, IPC and /dev/shm; without root in a user namespace.

Tests that run at the same time cannot end one another's processes or take one another's ports, leases and queues.
Everything that a worker started ends with it: the kernel kills what is left in its PID namespace.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from pathlib import Path

NEW_MOUNTS, NEW_IPC, NEW_PIDS, NEW_NETWORK = 0x20000, 0x8000000, 0x20000000, 0x40000000  # linux/sched.h
NEW_USERS = 0x10000000
CAPABILITIES = 0x20080522  # version of capset's structures, linux/capability.h
PRIVATE_TREE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE, linux/mount.h
PR_SET_PDEATHSIG = 1
GET_FLAGS, SET_FLAGS, IS_UP = 0x8913, 0x8914, 0x1  # linux/sockios.h, linux/if.h
# Leases, the names of `ip netns`, shared memory, sockets of ssh masters: their names hold a process number or a port,
# and workers have the same ones.
OWN_FOLDERS = ("/run/lock", "/run/netns", "/run/user", "/dev/shm", f"/tmp/sparkwright-{os.geteuid()}")

libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Get this signal when the parent ends, however it ends."""
    libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def enter_namespaces() -> None:
    """Return in a grandchild, which is alone in new namespaces; the two processes above it relay signals and its
    exit code. The first process of a PID namespace reaps orphans, so it is not the one that runs tests."""
    user, group = os.geteuid(), os.getegid()
    call_libc("unshare", NEW_MOUNTS | NEW_IPC | NEW_PIDS | NEW_NETWORK | (NEW_USERS if user else 0))
    if user:
        keep_user(user, group)
    if child := os.fork():
        os._exit(attend(child))
    end_with_parent()
    mount_filesystem("none", "/", "", PRIVATE_TREE)
    mount_filesystem("proc", "/proc", "proc")
    for folder in filter(os.path.isdir, OWN_FOLDERS) if user else OWN_FOLDERS:
        mode = 0o700 if "sparkwright" in folder else 0o1777  # of the folder below, too: cluster tests use it
        Path(folder).mkdir(mode=mode, parents=True, exist_ok=True)
        mount_filesystem("tmpfs", folder, "tmpfs")
        Path(folder).chmod(mode)
    raise_loopback()
    if user:
        drop_capabilities()
    if child := os.fork():
        os._exit(attend(child))
    end_with_parent()


def keep_user(user: int, group: int) -> None:
    """The user stays who it is in the new namespace; nobody else is there."""
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")


def drop_capabilities() -> None:
    """Give up what the maker of a user namespace may do in it, such as reading files without permission."""
    call_libc("capset", struct.pack("Ii", CAPABILITIES, 0), struct.pack("6I", *[0] * 6))


def can_enter() -> bool:
    """Try it in a child."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    try:
        enter_namespaces()
    except BaseException:
        os._exit(1)
    os._exit(0)


def attend(child: int) -> int:
    """Relay SIGINT and SIGTERM to the child, reap everyone, return the child's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(child, number))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def neighbours() -> dict[int, str]:
    """All living processes of this worker's namespace but itself and the first one: pid -> command line."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if pid not in (1, os.getpid()) and state not in "ZX":
            found[pid] = words[:150] or "(no command line)"
    return found


def mount_filesystem(source: str, target: str, kind: str, flags: int = 0) -> None:
    call_libc("mount", source.encode(), target.encode(), kind.encode(), flags, None)


def call_libc(name: str, *arguments: object) -> None:
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {errno.errorcode.get(number, number)}")


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, GET_FLAGS, request))[1]
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sH14x", b"lo", flags | IS_UP))
