"""Two nodes on one Linux machine, as far as ssh, addresses and processes show: namespaces with an sshd each.

Each has its own network (`fab0` to the other node, `mgmt0` to this machine), hostname, process table, /run/lock,
/dev/shm, /tmp, machine-id and host key; other disks, GPUs and kernel are the machine's. Wants root, OpenSSH, iproute2
and util-linux.
"""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

NAMES = ("spark-1", "spark-2")
# Runs as the first process of the node. $1: its folder, $2: name, $3: fabric address, $4: management address.
_BOOT = r"""
set -e
mount --make-rprivate /
mount -t proc proc /proc
echo "$2" >/proc/sys/kernel/hostname
mkdir -p /run/lock /run/sshd /etc/ssh
mount -t tmpfs tmpfs /run/lock
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount --bind "$1/ssh" /etc/ssh
mkdir -p "$HOME/.ssh"
mount --bind "$1/keys" "$HOME/.ssh"
# What the user's shell does at a login (pyenv waits 60 s for a stale lock) is nothing of a node's.
for f in .bashrc .profile .bash_profile .zshenv; do [ ! -f "$HOME/$f" ] || mount --bind /dev/null "$HOME/$f"; done
[ ! -e /etc/machine-id ] || mount --bind "$1/machine-id" /etc/machine-id
until ip link show fab0 >/dev/null 2>&1 && ip link show mgmt0 >/dev/null 2>&1; do sleep 0.05; done
ip address add "$3/24" dev fab0
ip address add "$4/30" dev mgmt0
ip link set fab0 mtu 9000
for i in lo fab0 mgmt0; do ip link set $i up; done
exec "$(command -v sshd)" -D -E "$1/sshd.log"
"""
_KEPT = ("PATH", "LD_LIBRARY_PATH")  # where this machine keeps nvidia-smi and libcuda, sshd would not know


@dataclass
class NetnsNode:
    name: str
    number: int
    folder: Path
    lane: int = 0
    process: "subprocess.Popen[bytes] | None" = None
    cpus: tuple[int, ...] = ()  # all that its processes may use; (): every one

    @property
    def fabric(self) -> str:
        return f"192.168.77.{self.number}"

    @property
    def management(self) -> str:
        return f"10.{77 + self.lane}.{self.number}.2"

    @property
    def device(self) -> str:
        """This machine's end of the management link."""
        return f"sparkw{self.lane or ''}{self.number}"

    def boot(self, key: Path) -> None:
        for sub in ("ssh", "keys", "models", "hub", "cache", "state"):
            (self.folder / sub).mkdir(parents=True)
        host_key = make_key(self.folder / "ssh" / "ssh_host_ed25519_key")
        (self.folder / "machine-id").write_text(f"{self.number:032x}\n")
        (self.folder / "ssh" / "sshd_config").write_text(_sshd_config(host_key, key))
        spaces = ("--net", "--mount", "--uts", "--pid", "--fork", "--kill-child")
        words = (str(self.folder), self.name, self.fabric, self.management)
        pinned = ["taskset", "-c", ",".join(map(str, self.cpus))] if self.cpus else []
        self.process = subprocess.Popen([*pinned, "unshare", *spaces, "sh", "-c", _BOOT, "boot", *words])

    def first_process(self) -> str:
        """The number, seen from this machine, of the node's process 1."""
        assert self.process
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return wait_for(lambda: children.read_text().split(), f"{self.name}: no first process")[0]

    def host_line(self) -> str:
        kind, data = (self.folder / "ssh" / "ssh_host_ed25519_key.pub").read_text().split()[:2]
        return f"{self.management} {kind} {data}\n"


class TwoNodes:
    """Two nodes: `with TwoNodes(folder) as nodes`; nodes.environ is what sparkwright (and ssh) need to reach them.

    lane: another number for another pair on the same machine at the same time, 0 to 9.
    """

    def __init__(self, folder: Path, simulated: bool = False, lane: int = 0) -> None:
        self.folder, self.simulated = folder, simulated
        self.nodes = [NetnsNode(name, k, folder / name, lane) for k, name in enumerate(NAMES, 1)]
        self.config = folder / "ssh_config"
        self._agent: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "TwoNodes":
        self.folder.mkdir(parents=True)
        key = make_key(self.folder / "user")
        try:
            for node in self.nodes:
                node.boot(key.with_suffix(".pub"))
            self._cable()
            self._write_config(key)
            self._start_agent(key)
            for node in self.nodes:
                wait_for(lambda name=node.name: self._answers(name), f"{node.name}: no ssh", 120)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """The end of a node's first process ends all its others, and takes the links away."""
        for process in [*(node.process for node in self.nodes), self._agent]:
            if process:
                process.kill()
                process.wait()
        for node in self.nodes:
            subprocess.run(["ip", "link", "delete", node.device], capture_output=True)

    @property
    def environ(self) -> dict[str, str]:
        return {"SSH_AUTH_SOCK": str(self.folder / "agent"), "SPARKWRIGHT_SSH_CONFIG": str(self.config)}

    def popen(self, name: str, script: str) -> "subprocess.Popen[str]":
        """A sh script that goes on on a node; its stdout as it comes."""
        argv = ["ssh", "-F", str(self.config), "-oBatchMode=yes", "-tt", name, script]
        return subprocess.Popen(argv, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def call(self, name: str, script: str, limit: float = 60) -> "subprocess.CompletedProcess[str]":
        """A sh script on a node, stdout and stderr together."""
        argv = ["ssh", "-F", str(self.config), "-oBatchMode=yes", name, script]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        return subprocess.run(argv, text=True, timeout=limit, **pipes)

    def _answers(self, name: str) -> bool:
        """True if ssh reaches the node; a first connection may hang on a busy machine, so each try has ten seconds."""
        try:
            return self.call(name, "true", limit=10).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _cable(self) -> None:
        """The fabric between the nodes, and a management link of each to this machine."""
        one, two = (node.first_process() for node in self.nodes)
        run_iproute("link", "add", "fab0", "netns", one, "type", "veth", "peer", "name", "fab0", "netns", two)
        for node, process in zip(self.nodes, (one, two), strict=True):
            run_iproute("link", "add", node.device, "type", "veth", "peer", "name", "mgmt0", "netns", process)
            run_iproute("address", "add", f"{node.management[:-1]}1/30", "dev", node.device)
            run_iproute("link", "set", node.device, "up")

    def _write_config(self, key: Path) -> None:
        known = self.folder / "known_hosts"
        known.write_text("".join(node.host_line() for node in self.nodes))
        hosts = "".join(f"Host {node.name}\n  HostName {node.management}\n" for node in self.nodes)
        common = f"Host *\n  User root\n  IdentityFile {key}\n  UserKnownHostsFile {known}\n"
        self.config.write_text(hosts + common + "  GlobalKnownHostsFile /dev/null\n")

    def _start_agent(self, key: Path) -> None:
        """The nodes log in to each other with the user's agent, which sparkwright forwards for a copy."""
        agent = self.folder / "agent"
        self._agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(agent)], stdout=subprocess.DEVNULL)
        wait_for(agent.exists, "no ssh-agent")
        subprocess.run(["ssh-add", "-q", str(key)], env={**os.environ, "SSH_AUTH_SOCK": str(agent)}, check=True)


def cluster(
    nodes: TwoNodes, rank: int = 0, more: dict[str, str] | None = None, count: int = 2, shared: bool = False
) -> dict:
    """The cluster file; more: environment for the node of that rank; count: the first nodes only; shared: one GPU."""
    told = []
    for node in nodes.nodes[:count]:
        paths = {sub: str(node.folder / sub) for sub in ("models", "hub", "cache", "state")}
        env = {"CUDA_VISIBLE_DEVICES": "0" if shared else str(node.number - 1), "NCCL_HOSTID": node.name}
        fabric = {"address": node.fabric, "interface": "fab0", "hcas": []}
        told.append({"name": node.name, "fabric": fabric, "paths": paths, "env": env})
    told[rank]["env"] |= more or {}
    return {"name": "two-namespaces", "simulated": nodes.simulated, "nodes": told}


def lacking() -> list[str]:
    """The tools that this machine lacks, as text."""
    tools = ("unshare", "mount", "ip", "sshd", "ssh", "ssh-keygen", "ssh-agent", "ssh-add", "rsync")
    found = [f"no {tool} on PATH" for tool in tools if not shutil.which(tool)]
    return found + (["namespaces want root"] if os.getuid() else [])


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def run_iproute(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def wait_for(question, what: str, seconds: float = 10.0):
    """The first true answer. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := question():
            return answer
        time.sleep(0.05)
    raise TimeoutError(what)


def _sshd_config(host_key: Path, user_key: Path) -> str:
    kept = " ".join(f'{name}="{os.environ[name]}"' for name in _KEPT if os.environ.get(name))
    return (
        f"Port 22\nHostKey {host_key}\nAuthorizedKeysFile {user_key} .ssh/authorized_keys\nStrictModes no\n"
        "UsePAM no\nPidFile none\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        f"AllowAgentForwarding yes\nMaxStartups 100\nSetEnv {kept}\n"
    )
