"""The system's programs that tests call: which are missing, and their Debian packages installed as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

# program or file -> package, Debian 12 and Ubuntu 24.04
PACKAGES = {
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "rsync": "rsync",
    "ip": "iproute2",
    "ps": "procps",
    "ping": "iputils-ping",
    "sudo": "sudo",
    "docker": "docker.io",
    "dockerd": "docker.io",
    "docker-compose": "docker-compose",
    "iptables": "iptables",
    "shellcheck": "shellcheck",
    "systemd-analyze": "systemd",
    "mmdebstrap": "mmdebstrap",
    "mpirun": "openmpi-bin",
    "curl": "curl",
    "openssl": "openssl",
    "zsh": "zsh",
    "fish": "fish",
    "cc": "gcc",
    "/usr/include/stdio.h": "libc6-dev",
    "promtool": "prometheus",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}
# For the report's page. Ubuntu has it as a snap only, which root cannot drive: there, what is installed is used.
BROWSER = {"chromium": "chromium"}
SERVICES_STAY_DOWN = Path("/usr/sbin/policy-rc.d")


def extend_path() -> None:
    """Debian keeps sshd and ip out of an ordinary user's PATH."""
    have = os.environ.get("PATH", "").split(":")
    os.environ["PATH"] = ":".join([*have, *(path for path in ("/usr/sbin", "/sbin") if path not in have)])


def missing(programs: Iterable[str]) -> list[str]:
    return [name for name in programs if not (shutil.which(name) or (name.startswith("/") and Path(name).exists()))]


def install_missing(log: Path) -> str | None:
    """Install what is missing; returns why it could not, or None. Nothing that is there already is touched."""
    known = PACKAGES | (BROWSER if is_debian() else {})
    packages = sorted({known[name] for name in missing(known)})
    if not packages:
        return None
    if not shutil.which("apt-get"):
        return f"no apt-get here; install {' '.join(packages)} by hand"
    print(f"test: installing {' '.join(packages)} (their services are not started)", flush=True)
    with services_down(), log.open("wb") as output:
        run_apt(["update"], output)
        ended = run_apt(["install", "--yes", "--no-install-recommends", *packages], output)
    if ended:
        print(log.read_text(errors="replace")[-2000:])
    return f"apt-get install {' '.join(packages)} ended with {ended}, see {log}" if ended else None


def is_debian() -> bool:
    release = Path("/etc/os-release")
    return release.exists() and "\nID=debian" in f"\n{release.read_text()}"


def run_apt(arguments: Sequence[str], output: IO[bytes]) -> int:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-oDpkg::Use-Pty=0", "-q", *arguments]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output).returncode


@contextmanager
def services_down() -> Iterator[None]:
    """Tests start their own sshd and dockerd: `make test` must not open two services on a developer's machine."""
    if SERVICES_STAY_DOWN.exists():
        yield
        return
    SERVICES_STAY_DOWN.write_text("#!/bin/sh\nexit 101\n")
    SERVICES_STAY_DOWN.chmod(0o755)
    try:
        yield
    finally:
        SERVICES_STAY_DOWN.unlink()
