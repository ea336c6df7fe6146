"""A real sshd of the current user on loopback, with keys, known_hosts and client config of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path

from fakes.ports import free_port
from patience import PATIENCE

SSHD = Path("/usr/sbin/sshd")
MISSING = "" if SSHD.exists() else "no /usr/sbin/sshd: install openssh-server to run these tests"


class Sshd:
    """Everything lies in `folder`, a short path below /tmp (unix sockets hold 104 bytes)."""

    def __init__(self, name: str = "node") -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix="swt", dir="/tmp"))
        self.port = free_port()
        self.log = self.folder / "log"
        self.config = self.folder / "config"
        self.known_hosts = self.folder / "known_hosts"
        self.key = make_key(self.folder / "user")
        self.host_key = make_key(self.folder / "host")
        (self.folder / "authorized_keys").write_text(self.key.with_suffix(".pub").read_text())
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def control(self) -> Path:
        return self.folder / "c"

    def start(self) -> "Sshd":
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self._write_server_config()
        self.know(self.host_key)
        self.config.write_text(self.host_block(self.name) + self.common())
        argv = [str(SSHD), "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.log)]
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        wait_for_port(self.port)
        return self

    def know(self, key: Path) -> None:
        kind, data = key.with_suffix(".pub").read_text().split()[:2]
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {kind} {data}\n")

    def host_block(self, alias: str, extra: str = "") -> str:
        return f"Host {alias}\n  HostName 127.0.0.1\n  Port {self.port}\n{extra}\n"

    def common(self) -> str:
        return (
            f"Host *\n  IdentityFile {self.key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
        )

    def connections(self) -> int:
        return self.log.read_text().count("Accepted publickey")

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_server_config(self) -> None:
        """sshd from 9.8 on shuts out an address after failed logins, which some tests make; older ones lack it."""
        path = self.folder / "sshd_config"
        path.write_text(self._server_config() + "PerSourcePenalties no\n")
        if subprocess.run([SSHD, "-t", "-f", path], capture_output=True).returncode != 0:
            path.write_text(self._server_config())

    def _server_config(self) -> str:
        return (
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.host_key}\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nLogLevel VERBOSE\n"
            "AllowAgentForwarding yes\nMaxStartups 100\n"
            # Debian's bash reads ~/.bashrc under sshd unless it seems nested: a developer's own (pyenv) costs 60 ms.
            "SetEnv SHLVL=2\n"
        )


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def wait_for_port(port: int, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise TimeoutError(f"nothing listens on port {port}")
