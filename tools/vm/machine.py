"""The machine while it runs: ssh on a port of loopback, and what its watcher has seen."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vm.image import DiskImage

MEMORY = 2048  # MiB
# Requests and bytes a second of both disks together: a refault costs what it costs on a busy disk.
IOPS, RATE = 250, 16 << 20
CONFIG = """Host {name}
  HostName 127.0.0.1
  Port {port}
  User spark
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking accept-new
  ServerAliveInterval 30
  ConnectTimeout 60
"""


class MachineSample(NamedTuple):
    """One second. some, full: percent of the last 10 s; free, available, anonymous, cache: MiB; at: seconds."""

    at: float
    some: float
    full: float
    free: float
    available: float
    anonymous: float
    cache: float
    refaults: float
    killed: float


@dataclass
class Machine:
    """folder: of one run."""

    image: DiskImage
    folder: Path
    swap: bool = False
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def config(self) -> Path:
        return self.folder / "ssh_config"

    @contextlib.contextmanager
    def running(self) -> Iterator["Machine"]:
        self.folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.config.write_text(
            CONFIG.format(name="spark-1", port=port, key=self.image.key, known=self.folder / "known_hosts")
        )
        with (self.folder / "qemu.log").open("wb") as log:
            self.process = subprocess.Popen(self._argv(port), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            end = time.monotonic() + 90
            while self.login(20) is None:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the machine has no ssh: {(self.folder / 'qemu.log').read_text()[-500:]}")
            yield self
        finally:
            self.process.kill()
            self.process.wait()

    def _argv(self, port: int) -> list[str]:
        limit = f"throttling.group=disk,throttling.iops-total={IOPS},throttling.bps-total={RATE}"
        boot = f"console=ttyS0 panic=-1 swap={'on' if self.swap else 'off'}"
        words = ["-accel", "kvm", "-cpu", "host"] if hardware() else ["-accel", "tcg,thread=multi", "-cpu", "max"]
        words += ["-m", str(MEMORY), "-smp", "2", "-display", "none", "-no-reboot"]
        words += ["-kernel", str(self.image.kernel), "-initrd", str(self.image.initramfs), "-append", boot]
        for path in (self.image.root, self.image.models):
            words += ["-drive", f"file={path},format=raw,if=virtio,snapshot=on,cache=unsafe,{limit}"]
        words += ["-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"]
        words += ["-device", "virtio-net-pci,netdev=net", "-serial", f"file:{self.folder / 'console'}"]
        return ["qemu-system-x86_64", *words, "-serial", f"file:{self.folder / 'seen'}"]

    def ssh(self, command: str, timeout: float = 60) -> str:
        argv = ["ssh", "-F", str(self.config), "-o", "BatchMode=yes", "spark-1", command]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"{command[:80]}: {done.returncode} {done.stderr[-500:]}")
        return done.stdout

    def login(self, timeout: float) -> float | None:
        """Seconds that a login and one command take; None where they take longer than the timeout or fail."""
        began = time.monotonic()
        try:
            self.ssh("ls / >/dev/null", timeout)
        except (RuntimeError, subprocess.TimeoutExpired):
            return None
        return time.monotonic() - began

    def seen(self) -> list[MachineSample]:
        lines = (self.folder / "seen").read_text(errors="replace").splitlines()
        rows = (line.split() for line in lines)
        return [MachineSample(*map(float, row)) for row in rows if len(row) == len(MachineSample._fields)]


def hardware() -> bool:
    """A /dev/kvm without the CPU's own virtualization runs no kernel but its maker's: then qemu computes everything."""
    with contextlib.suppress(OSError):
        flags = set(Path("/proc/cpuinfo").read_text().split())
        return os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(flags & {"vmx", "svm"})
    return False


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def peak_value(seen: Sequence[MachineSample], name: str) -> float:
    return max((float(getattr(one, name)) for one in seen), default=0.0)
