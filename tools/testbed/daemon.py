"""An outer dockerd that is the testbed's alone: own data, own socket, no iptables rule, no change of forwarding."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from testbed.settings import ContainerNetwork, ContainerSettings
from testbed.shell import TestbedError, run, wait_until

CLIENT = "docker"


class Daemon:
    def __init__(self, settings: ContainerSettings) -> None:
        self._settings = settings
        self._data = settings.root / "docker"
        self._pidfile = settings.run / "dockerd.pid"
        self._log = settings.root / "dockerd.log"
        self.socket = settings.run / "docker.sock"

    @property
    def folder(self) -> Path:
        """Disk space of the testbed's own."""
        return self._settings.root

    def argv(self, *words: str) -> list[str]:
        return [CLIENT, "--config", str(self._settings.root / "client"), "--host", f"unix://{self.socket}", *words]

    def docker(self, *words: str, stdin: IO[bytes] | None = None) -> str:
        return run(self.argv(*words), stdin=stdin).strip()

    def answers(self) -> bool:
        if not self.socket.exists():
            return False
        try:
            self.docker("version", "--format", "{{.Server.Version}}")
        except TestbedError:
            return False
        return True

    def start(self) -> bool:
        """True when it was not running before."""
        if self.answers():
            return False
        self.stop()  # one that has lost its socket holds the databases: the next one would wait for them in vain
        for folder in (self._settings.run, self._data, self._settings.root / "client"):
            folder.mkdir(parents=True, exist_ok=True)
        self._log.unlink(missing_ok=True)
        self._pidfile.unlink(missing_ok=True)
        self._drop_left_namespaces()
        with self._log.open("wb") as log:
            run_detached(self._command(), log)
        try:
            wait_until(self.answers, "the testbed's dockerd", 30)
        except TestbedError as error:
            raise TestbedError(f"{error}; the end of {self._log}:\n{self._log.read_text()[-2000:]}") from error
        return True

    def _command(self) -> list[str]:
        """`--iptables=false` without masquerade also keeps the nodes from reaching anything but this machine."""
        paths = ["--data-root", str(self._data), "--exec-root", str(self._settings.run / "exec")]
        paths += ["--pidfile", str(self._pidfile), "--host", f"unix://{self.socket}"]
        quiet = ["--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false", "--log-level=warn"]
        return ["dockerd", *paths, *quiet]

    def _drop_left_namespaces(self) -> None:
        """Drop the network namespaces of a dockerd that was killed.

        The next dockerd does so after a minute only; until then their devices answer for the addresses of new nodes.
        """
        for path in (self._settings.run / "exec/netns").glob("*"):
            with contextlib.suppress(TestbedError):  # not mounted any more
                run(["umount", "--lazy", str(path)])
            path.unlink(missing_ok=True)

    def stop(self) -> None:
        pid = self._pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not runs(pid), "the testbed's dockerd to end", 60)

    def _pid(self) -> int | None:
        """Find the process of this data folder, by its command line: a file with its number may be lost or stale."""
        wanted = [b"--data-root", str(self._data).encode()]
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:1] and Path(os.fsdecode(words[0])).name == "dockerd" and words[1:3] == wanted:
                return int(entry.name)
        return None

    def make_networks(self) -> None:
        present = self.docker("network", "ls", "--format", "{{.Name}}").split()
        for network in self._settings.networks:
            if network.name not in present:
                self._make_network(network)

    def _make_network(self, network: ContainerNetwork) -> None:
        options = [f"com.docker.network.bridge.name={network.bridge}", f"com.docker.network.driver.mtu={network.mtu}"]
        flags = [word for option in options for word in ("--opt", option)] + ["--internal"] * network.internal
        self.docker("network", "create", "--subnet", network.cidr, *flags, network.name)

    def remove_networks(self) -> None:
        present = self.docker("network", "ls", "--format", "{{.Name}}").split()
        for network in self._settings.networks:
            if network.name in present:
                self.docker("network", "rm", network.name)


def runs(pid: int) -> bool:
    """A zombie does not: who must reap it may never do so (`make test` is a subreaper), and its cmdline is empty."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def run_detached(command: Sequence[str], log: IO[bytes]) -> None:
    """`setsid --fork` leaves no child of this process behind: nothing to reap, no warning at exit."""
    subprocess.run(
        ["setsid", "--fork", *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True, timeout=30
    )
