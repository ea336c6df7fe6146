"""One node while it runs: what a test may do to it, and what it can see there."""

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.daemon import Daemon
from testbed.entry import WayIn
from testbed.images import BASE_IMAGE, ENGINE_IMAGE, LayeredImage, file_digest, write_archive
from testbed.keys import HostKeys
from testbed.settings import FABRIC_DEVICE, USERS, NodeSpec
from testbed.shell import TestbedError, run_to_end, wait_until

Completed = subprocess.CompletedProcess[str]
STATE = ".local/state/sparkwright"
_FREEZE_TRIES = 5
# History stays: the audit log, the store and the evidence of incidents; and so do the keys of gateways.
_LEFT = rf"""
find /home/*/{STATE} /run/lock/sparkwright* \( -name incidents -o -path '*/sparkwright/door' \) -prune -o -type f \
  ! -name audit.log ! -name 'store.sqlite*' ! -name 'hooks*' ! -path '*/served/*' -print 2>/dev/null
ls -d /home/*/~ /home/*/.config/systemd/user/sparkwright-* /etc/systemd/system/sparkwright-* 2>/dev/null
ls -d /tmp/sparkwright-*-* 2>/dev/null
ls /var/lib/systemd/linger/* 2>/dev/null
grep -l 'sparkwright:' /home/*/.ssh/authorized_keys 2>/dev/null
"""


@dataclass(frozen=True, slots=True)
class NodeProcess:
    pid: int
    user: str
    command: str


class ContainerNode:
    """`exec` goes in by the kernel, as from a console: it works whatever has become of sshd or the network."""

    def __init__(self, spec: NodeSpec, daemon: Daemon, keys: HostKeys) -> None:
        self.spec = spec
        self.name = spec.name
        self.mgmt = spec.mgmt
        self.fabric = spec.fabric
        self.fabric_b = spec.fabric_b
        self.ssh_config = keys.config
        self.host_key = keys.host_public(spec)
        self.changed = True
        """Set by whatever may change the node; `reset` clears it. Only what is known to read leaves it alone."""
        self._daemon = daemon
        self._way = WayIn(spec.container, daemon)

    def __repr__(self) -> str:
        return f"Node({self.name})"

    def argv(self, *words: str) -> list[str]:
        """The command line of a program in the node that a test keeps running, with its stdin open."""
        self.changed = True
        return self._daemon.argv("exec", "-i", self.spec.container, *words)

    def exec(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        input: str | None = None,
        check: bool = True,
        timeout: float = 60,
    ) -> Completed:
        """`user` is entered with its groups and HOME, but without sshd's environment: for that there is `ssh`."""
        self.changed = True
        return self._exec(argv, user, input, check, timeout)

    def _exec(self, argv: Sequence[str], user: str, text: str | None, check: bool, timeout: float) -> Completed:
        home = f"/home/{user}" if user in USERS else "/root"
        if way := self._way.words(user):
            environment = {**self._way.environment, "HOME": home}
            return self._complete([*way, "env", "-C", home, *argv], text, check, timeout, environment)
        words = ["exec", "-i", "--user", user, "--workdir", home, "--env", f"HOME={home}", self.spec.container]
        return self._complete(self._daemon.argv(*words, *argv), text, check, timeout)

    def look(self, script: str, *, check: bool = True) -> str:
        """Run a script that changes nothing: the next test needs no reset for it."""
        return self._exec(["sh", "-c", script], "root", None, check, 60).stdout.strip()

    def sh(self, script: str, *, user: str = "root", check: bool = True, timeout: float = 60) -> str:
        return self.exec(["sh", "-c", script], user=user, check=check, timeout=timeout).stdout.strip()

    def ssh(self, command: str, *, user: str = "spark", check: bool = True, timeout: float = 60) -> Completed:
        """Runs a command as a user of the node would come in, with strict host keys."""
        self.changed = True
        argv = ["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", f"{user}@{self.name}", command]
        return self._complete(argv, None, check, timeout)

    def _complete(
        self, argv: list[str], text: str | None, check: bool, timeout: float, env: dict[str, str] | None = None
    ) -> Completed:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        done = run_to_end(argv, timeout, text or "", text=True, env=env, **pipes)
        if check and done.returncode != 0:
            raise TestbedError(f"{self.name}: {argv[-3:]} ended with {done.returncode}: {done.stderr or done.stdout}")
        return done

    # The machine

    def state(self) -> str:
        """created, running, paused, exited; or absent."""
        done = self._complete(
            self._daemon.argv("inspect", "--format", "{{.State.Status}}", self.spec.container), None, False, 30
        )
        return done.stdout.strip() if done.returncode == 0 else "absent"

    def reboot(self) -> None:
        """An orderly one: units stop, processes and containers die, enabled units come back."""
        self.changed = True
        self._daemon.docker("restart", "--time", "3", self.spec.container)
        self.wait_ready()

    def power_cut(self) -> None:
        """Off at once, as by the power button; the node is unreachable until `start`."""
        self.changed = True
        self._daemon.docker("kill", self.spec.container)

    def stop(self) -> None:
        self.changed = True
        self._daemon.docker("stop", "--time", "3", self.spec.container)

    def start(self) -> None:
        self.changed = True
        self._daemon.docker("start", self.spec.container)
        self.wait_ready()

    def freeze(self) -> None:
        """Nothing on the node runs, but its kernel still answers TCP and ping: the hardest fault to detect."""
        self.changed = True
        for _ in range(_FREEZE_TRIES - 1):
            with contextlib.suppress(TestbedError):  # a busy kernel does not freeze all processes in time
                self._daemon.docker("pause", self.spec.container)
                return
        self._daemon.docker("pause", self.spec.container)

    def thaw(self) -> None:
        self.changed = True
        self._daemon.docker("unpause", self.spec.container)

    def outer_pid(self, pid: int = 1) -> int:
        """The number by which this machine knows a process of the node."""
        first = self._way.first_process()
        space = Path(f"/proc/{first}/ns/pid").readlink()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                if (entry / "ns/pid").readlink() == space:
                    told = (entry / "status").read_text().partition("NSpid:")[2].splitlines()[0].split()
                    if int(told[-1]) == pid:
                        return int(entry.name)
        raise TestbedError(f"{self.name}: no process {pid}")

    def pid1_started(self) -> str:
        """Clock ticks between the host's boot and the node's: what changes at each reboot, unlike the boot id."""
        return self.sh("cut -d' ' -f22 /proc/1/stat")

    def wait_ready(self, timeout: float = 300) -> None:
        wait_until(self._ready, f"{self.name} to be up with sshd and dockerd", timeout)

    def _ready(self) -> bool:
        # is-active with several units is content with one of them
        units = "".join(f"systemctl is-active -q {unit} && " for unit in ("node-net", "docker", "ssh"))
        if self.exec(["sh", "-c", units + "docker version >/dev/null"], check=False).returncode != 0:
            return False
        try:
            with socket.create_connection((self.mgmt, 22), timeout=2) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def recover(self) -> None:
        """Brings the node to running, from whatever state a test has left it in."""
        state = self.state()
        if state == "paused":
            self.thaw()
        elif state != "running":
            self.start()

    # Faults

    def set_shim(self, tool: str, variant: str) -> None:
        """Sets a tool's report from now on: `default`, `real`, `absent` or a variant of its own (see fixtures.py)."""
        known = {"default", "real", "absent", "twin"} | self.shim_variants(tool)
        if variant not in known:
            raise TestbedError(f"{tool} has no variant {variant}; there are {sorted(known)}")
        self.write(f"/opt/shims/{tool}/switch", variant + "\n")

    def shim_variants(self, tool: str) -> set[str]:
        names = self.sh(f"cd /opt/shims/{tool} && ls").split()
        return {name.rpartition(".")[0].partition("@")[0] for name in names if "." in name}

    def set_fixture(self, variant: str) -> None:
        """Lays a variant of the file trees (`drifted-gids`, `memory-retained`, ...) over those that are shown."""
        self.exec(["rsync", "-a", "--checksum", f"/opt/fixtures.d/{variant}/", "/opt/fixtures/"])

    def write(self, path: str, text: str, *, user: str = "root", mode: str = "644") -> None:
        script = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"'
        self.exec(["sh", "-c", script, "sh", path, mode], user=user, input=text)

    def fill_disk(self, path: str, leave_bytes: int, size: str = "64m") -> None:
        """A small file system at `path` with `leave_bytes` left; taken away by `Testbed.reset`."""
        self.exec(["node-fill", path, size, str(leave_bytes)])

    def set_link(self, device: str = FABRIC_DEVICE, *, up: bool) -> None:
        self.exec(["ip", "link", "set", device, "up" if up else "down"])

    def regenerate_host_key(self) -> None:
        """Replaces the host key as a reinstall does: the key that known_hosts holds is no longer the node's."""
        self.exec(["node-hostkey", "new"])

    def restore_host_key(self) -> None:
        self.exec(["node-hostkey", "restore"])

    # What is there

    def containers(self) -> list[str]:
        return self.look("docker ps --all --format '{{.Names}}'").split()

    def images(self) -> list[str]:
        return self.look("docker image ls --format '{{.Repository}}:{{.Tag}}'").split()

    def processes(self) -> list[NodeProcess]:
        """All but those of this very look."""
        lines = self.look("exec ps -eo pid=,user:32=,args=").splitlines()
        found = [NodeProcess(int(pid), user, args) for pid, user, args in (line.split(None, 2) for line in lines)]
        return [process for process in found if not process.command.startswith("ps -eo pid=")]

    def leftovers(self) -> list[str]:
        """The leftovers that a `down` should have taken away, as text; empty if the node is clean."""
        found = [f"container {name}" for name in self.containers()]
        # of any login, and what systemd keeps for a user for a while after the last one
        sessions = ("sshd:", "sshd-session:", "/lib/systemd/systemd --user", "(sd-pam)", "/usr/bin/dbus-daemon")
        ending = ("[systemd]", "[(sd-pam)]")
        for process in self.processes():
            if process.user in USERS and not process.command.startswith(sessions + ending):
                found.append(f"process {process.pid} {process.command}")
        return found + [f"file {path}" for path in self.look(_LEFT, check=False).split("\n") if path]

    def describe(self) -> str:
        """The report for a failed test: the running containers and their last output."""
        if (state := self.state()) != "running":
            return state
        script = 'docker ps -a; for n in $(docker ps -aq); do echo "--- $n"; docker logs --tail 30 $n 2>&1; done'
        left = [line for line in self.leftovers() if "/runtime/" not in line]  # the program itself: 700 files
        return "\n".join([*left, self.sh(script, check=False)])

    def reset(self) -> None:
        self.recover()
        self.exec(["node-reset"])
        self.changed = False

    # What is put there

    def put_tar(self, content: bytes, folder: str, *, clear: bool = False) -> None:
        self.changed = True
        script = f"mkdir -p {folder} && {f'rm -rf {folder}/* && ' if clear else ''}tar -x -C {folder} -f -"
        command = self._daemon.argv("exec", "-i", self.spec.container, "sh", "-c", script)
        subprocess.run(command, input=content, check=True, timeout=120, capture_output=True)

    def put(self, path: str, content: bytes, *, user: str = "spark") -> None:
        """A file of any size that belongs to `user`."""
        self.changed = True
        script = 'mkdir -p "$(dirname "$1")" && cat > "$1"'
        command = self._daemon.argv("exec", "-i", "--user", user, self.spec.container, "sh", "-c", script, "sh", path)
        subprocess.run(command, input=content, check=True, timeout=300, capture_output=True)

    def image_id(self, name: str) -> str:
        """Empty when the node has no such image."""
        return self.look(f"docker image inspect --format '{{{{.Id}}}}' {name} 2>/dev/null", check=False)

    def load(self, base: LayeredImage, engine: LayeredImage, base_tar: Path, source: bytes) -> None:
        """Copies the engine's image to the nested dockerd, and its base when that is not there yet."""
        if self.image_id(ENGINE_IMAGE) == engine.id and self.image_id(BASE_IMAGE) == base.id:
            return
        blobs: dict[str, Path | bytes] = {engine.layers[-1]: source}
        if self.image_id(BASE_IMAGE) != base.id:
            blobs[file_digest(base_tar)] = base_tar
        with tempfile.TemporaryDirectory(dir=self._daemon.folder) as folder:  # a gigabyte: /tmp may be small, or full
            archive = Path(folder) / "image.tar"
            write_archive(archive, [base, engine], blobs)
            with archive.open("rb") as file:
                self._daemon.docker("exec", "-i", self.spec.container, "docker", "load", "--quiet", stdin=file)
        self.sh("docker image prune --force")
