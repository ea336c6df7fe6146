"""Two arm64 nodes on a machine of another processor: Debian's own arm64 packages, run by qemu-user.

Each node is a user namespace with a binfmt_misc of its own (Linux 6.7 and later), so that nothing is registered on this
machine: every program on the node, its sshd and shell too, is an arm64 one. Debian 13 has Python 3.13.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import system

from unit.engines.samples import ROOT

sys.path.insert(0, str(ROOT / "tools/gpu"))
import two_nodes

SUITE, PYTHON = "trixie", "3.13"
QEMU = "/usr/bin/qemu-aarch64-static"
MIRROR = "http://deb.debian.org/debian"
PACKAGES = (
    *("python3", "openssh-server", "openssh-client", "iproute2", "procps", "rsync", "util-linux", "coreutils", "bash"),
    *("dash", "curl", "sed", "grep", "mawk", "findutils", "gzip", "tar", "hostname", "login", "libgomp1", "libstdc++6"),
    "caddy",
)
PLATFORMS = ("manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_28_aarch64")
VENV = "opt/sparkwright"
_MAGIC = (
    r":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:"
)
# $1: the node's folder, $2: name, $3: fabric address, $4: management address, $5: the root, $6: binfmt_misc's line.
_BOOT = r"""
set -e
read -r mapped
exec unshare --net --mount --uts --pid --fork --kill-child sh -c '
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s "$6" >/proc/sys/fs/binfmt_misc/register
echo "$2" >/proc/sys/kernel/hostname
mkdir -p "$1/over" "$1/root"
mount -t tmpfs tmpfs "$1/over"
mkdir "$1/over/upper" "$1/over/work"
mount -t overlay overlay -o "lowerdir=$5,upperdir=$1/over/upper,workdir=$1/over/work" "$1/root"
r="$1/root"
mkdir -p "$r$1" "$r/run/sshd" "$r/run/lock" "$r/root/.ssh" "$r/dev/shm"
mount -t proc proc "$r/proc"
mount --rbind /dev "$r/dev"
mount -t tmpfs tmpfs "$r/dev/shm"
mount --rbind /sys "$r/sys" || mount -t sysfs sysfs "$r/sys"
mount --bind "$1" "$r$1"
cp "$1"/ssh/* "$r/etc/ssh/"
cp "$1/machine-id" "$r/etc/machine-id"
chmod 600 "$r"/etc/ssh/ssh_host_ed25519_key
until ip link show fab0 >/dev/null 2>&1 && ip link show mgmt0 >/dev/null 2>&1; do sleep 0.05; done
ip address add "$3/24" dev fab0
ip address add "$4/30" dev mgmt0
ip link set fab0 mtu 9000
for i in lo fab0 mgmt0; do ip link set $i up; done
exec chroot "$r" /usr/sbin/sshd -D -E "$1/sshd.log"
' boot "$@"
"""


class Arm64Node(two_nodes.NetnsNode):
    root = Path("/nowhere")

    def boot(self, key: Path) -> None:
        """Boots the node like the base class, in a user namespace in which root may mount a binfmt_misc."""
        for sub in ("ssh", "keys", "models", "hub", "cache", "state"):
            (self.folder / sub).mkdir(parents=True)
        host_key = two_nodes.make_key(self.folder / "ssh" / "ssh_host_ed25519_key")
        (self.folder / "machine-id").write_text(f"{self.number:032x}\n")
        user_key = Path(shutil.copy(key, self.folder / "ssh"))
        config = two_nodes._sshd_config(host_key, user_key).replace(str(host_key.parent), "/etc/ssh")
        lines = [line for line in config.splitlines() if not line.startswith("SetEnv")]
        (self.folder / "ssh" / "sshd_config").write_text("\n".join([*lines, ""]))
        words = (str(self.folder), self.name, self.fabric, self.management, str(self.root), f"{_MAGIC}{QEMU}:F")
        argv = ["unshare", "--user", "sh", "-c", _BOOT, "boot", *words]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE)  # type: ignore[assignment]
        assert self.process and self.process.stdin
        two_nodes.wait_for(lambda: _namespace(self.process.pid) != _namespace(os.getpid()), "no user namespace")
        for name in ("gid_map", "uid_map"):
            Path(f"/proc/{self.process.pid}/{name}").write_text("0 0 65536")
        self.process.stdin.write(b"mapped\n")
        self.process.stdin.close()


class Arm64Nodes(two_nodes.TwoNodes):
    def __init__(self, folder: Path, root: Path) -> None:
        super().__init__(folder)
        self.nodes = [Arm64Node(name, k, folder / name) for k, name in enumerate(two_nodes.NAMES, 1)]
        for node in self.nodes:
            node.root = root


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return ""


def install_emulator() -> None:
    """Debian's package, where root lacks it; nothing is registered or started."""
    if not Path(QEMU).exists() and not os.getuid() and shutil.which("apt-get"):
        with system.services_down(), open(os.devnull, "wb") as nowhere:
            system.run_apt(["update"], nowhere)
            system.run_apt(["install", "--yes", "--no-install-recommends", "qemu-user-static", "mmdebstrap"], nowhere)


def lacking() -> str:
    """The reason why no arm64 node can be made here; '' if one can."""
    wanting = [*two_nodes.lacking(), *(f"no {one} on PATH" for one in ("mmdebstrap", "pip") if not shutil.which(one))]
    wanting += [] if Path(QEMU).exists() else [f"no {QEMU}: apt-get install qemu-user-static"]
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    wanting += [] if release >= (6, 7) else ["Linux before 6.7 has no binfmt_misc of a namespace's own"]
    return "; ".join(wanting)


def make_root(root: Path) -> str:
    """Debian's packages, the dependencies' arm64 wheels and this source. Returns why it could not be made, or ''."""
    made = root / "etc/made"
    if not made.exists() or made.read_text() != " ".join(PACKAGES):
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        words = ["mmdebstrap", "--quiet", "--arch=arm64", "--variant=extract", f"--include={','.join(PACKAGES)}"]
        done = subprocess.run([*words, "--format=directory", SUITE, root, MIRROR], capture_output=True, text=True)
        if done.returncode:
            return f"no arm64 packages: {done.stderr.strip()[-200:]}"
        base = root / "usr/share/base-passwd"
        (root / "etc/passwd").write_text(
            f"{(base / 'passwd.master').read_text()}sshd:x:100:65534::/run/sshd:/bin/false\n"
        )
        (root / "etc/group").write_text((base / "group.master").read_text())
        for name, program in (("sh", "dash"), ("awk", "mawk")):
            link = root / "usr/bin" / name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
        if why := _dependencies(root / VENV):
            return why
        made.write_text(" ".join(PACKAGES))
    site = root / VENV / "site/sparkwright"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / "src/sparkwright", site, ignore=shutil.ignore_patterns("__pycache__"))
    return ""


def _dependencies(venv: Path) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    words = ["pip", "install", "--quiet", "--target", str(venv / "site"), "--only-binary", ":all:"]
    words += [
        "--python-version",
        PYTHON,
        "--implementation",
        "cp",
        "--abi",
        f"cp{PYTHON.replace('.', '')}",
        "--abi",
        "abi3",
    ]
    words += ["--abi", "none", *(word for name in PLATFORMS for word in ("--platform", name)), "--no-compile"]
    done = subprocess.run([*words, *project["dependencies"], "xllamacpp"], capture_output=True, text=True)
    if done.returncode:
        return f"no arm64 wheels: {done.stderr.strip()[-200:]}"
    python = venv / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH=/{VENV}/site exec /usr/bin/python3 "$@"\n')
    python.chmod(0o755)
    return ""
