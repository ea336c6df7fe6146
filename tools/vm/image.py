"""Builds what the machine boots from: Debian's cloud kernel, an initramfs, a root file system, a disk of model files.

Packages come from the Debian mirror, once; nothing of them is installed on this machine.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from fakes.sshd import make_key
from testbed.rootfs import MIRROR, SUITE

TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "debootstrap": "debootstrap",
    "mke2fs": "e2fsprogs",
    "/bin/busybox": "busybox-static",
    "ssh": "openssh-client",
}
MIB = 1 << 20
_PACKAGES = "openssh-server,python3-minimal,libpython3-stdlib,iproute2,procps"
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_KERNEL = "linux-image-cloud-amd64"
_MODULES = (
    *(f"drivers/virtio/{name}" for name in ("virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev")),
    *("drivers/virtio/virtio_pci", "drivers/block/virtio_blk"),
    *("net/core/failover", "drivers/net/net_failover", "drivers/net/virtio_net"),
)
_EARLY = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /dev /new
/bin/busybox mount -t devtmpfs dev /dev
exec >/dev/console 2>&1
for module in MODULES; do /bin/busybox insmod /$module.ko; done
until [ -b /dev/vdb ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /new
/bin/busybox mount -t ext4 -o ro /dev/vdb /new/home/spark/models
/bin/busybox mount --move /dev /new/dev
exec /bin/busybox switch_root /new /sbin/node-init
"""
# The first process. The watcher is locked in memory and has a serial line of its own: it sees the node freeze.
_INIT = """#!/bin/sh
exec >/dev/console 2>&1
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run; mount -t tmpfs tmp /tmp
mkdir -p /dev/pts /dev/shm /run/sshd /run/lock
chmod 1777 /tmp /run/lock; mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm
hostname spark-1
ip link set lo up; ip link set eth0 up; ip address add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2
grep -q swap=on /proc/cmdline && swapon /swap
/usr/bin/python3 -I /sbin/node-watch >/dev/ttyS1 2>&1 &
/usr/sbin/sshd -e >/dev/console 2>&1
while :; do sleep 3600; done
"""
_WATCH = """
import ctypes, time
files = [open("/proc/pressure/memory"), open("/proc/meminfo"), open("/proc/vmstat")]
ctypes.CDLL(None).mlockall(3)
while True:
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read())
    some, full = (line.split()[1].partition("=")[2] for line in texts[0].splitlines())
    kib = {line.split(":")[0]: int(line.split()[1]) for line in texts[1].splitlines()}
    count = dict(line.split() for line in texts[2].splitlines())
    row = [some, full, kib["MemFree"] // 1024, kib["MemAvailable"] // 1024, kib["AnonPages"] // 1024]
    row += [(kib["Active(file)"] + kib["Inactive(file)"]) // 1024, count["workingset_refault_file"], count["oom_kill"]]
    print(f"{time.monotonic():.2f}", *row, flush=True)
    time.sleep(1)
"""


class DiskImage:
    """folder: everything that is made; a second call with the same definition finds it there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel, self.initramfs = folder / "vmlinuz", folder / "initramfs"
        self.root, self.models, self.key = folder / "root.ext4", folder / "models.ext4", folder / "key"

    def build(self, shards: int, size: int) -> None:
        """shards of so many bytes as the model `tiny`."""
        made = hashlib.sha256(f"{Path(__file__).read_text()}{shards} {size}".encode()).hexdigest()
        stamp = self.folder / "made"
        if stamp.exists() and stamp.read_text() == made:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._kernel()
        self._root()
        self._models(shards, size)
        stamp.write_text(made)

    def _kernel(self) -> None:
        found = run("apt-cache", "depends", _KERNEL).split("Depends: ")[1].split()[0]
        run("apt-get", "-qq", "download", "-oAPT::Sandbox::User=root", found, cwd=self.folder)
        (package,) = self.folder.glob("linux-image-*.deb")
        unpacked = self.folder / "kernel"
        run("dpkg", "-x", str(package), str(unpacked))
        (kernel,) = unpacked.glob("boot/vmlinuz-*")
        kernel.rename(self.kernel)
        (modules,) = unpacked.glob("lib/modules/*/kernel")
        names = [Path(path).name for path in _MODULES]
        files = {f"{Path(path).name}.ko": modules / f"{path}.ko" for path in _MODULES}
        content = {name: path.read_bytes() for name, path in files.items() if path.exists()}
        early = _EARLY.replace("MODULES", " ".join(names)).encode()
        content |= {"init": early, "bin/busybox": Path("/bin/busybox").read_bytes()}
        self.initramfs.write_bytes(b"".join(_newc(content)))
        shutil.rmtree(unpacked)
        package.unlink()

    def _root(self) -> None:
        root = self.folder / "root"
        run("debootstrap", "--variant=minbase", f"--include={_PACKAGES}", SUITE, str(root), MIRROR)
        run("chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", "spark")
        public = make_key(self.key).with_suffix(".pub").read_text()
        files = {"sbin/node-init": _INIT, "sbin/node-watch": _WATCH, "home/spark/.ssh/authorized_keys": public}
        for path, text in files.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        (root / "sbin/node-init").chmod(0o755)
        (root / "home/spark/models").mkdir()
        run("chown", "-R", "1000:1000", str(root / "home/spark"))
        for path in ("var/cache", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
            shutil.rmtree(root / path, ignore_errors=True)
        run("fallocate", "--length", "1G", str(root / "swap"))
        (root / "swap").chmod(0o600)
        run("mkswap", str(root / "swap"))
        make_disk(self.root, root, 3000 * MIB)
        shutil.rmtree(root)

    def _models(self, shards: int, size: int) -> None:
        folder = self.folder / "models"
        (folder / "tiny").mkdir(parents=True)
        for number in range(1, shards + 1):
            with (folder / "tiny" / f"model-{number:05}-of-{shards:05}.safetensors").open("wb") as file:
                block = os.urandom(MIB)
                for _ in range(size // MIB):
                    file.write(block)
        run("chown", "-R", "1000:1000", str(folder))
        make_disk(self.models, folder, shards * size * 11 // 10 + 64 * MIB)
        shutil.rmtree(folder)


def lacking() -> list[str]:
    """Debian packages of what is called here and is not there."""
    return [package for program, package in TOOLS.items() if not shutil.which(program, path=PATH)]


def make_disk(path: Path, content: Path, size: int) -> None:
    run(
        "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", str(content), str(path), f"{size // 1024}k"
    )


def _newc(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """A cpio archive as the kernel reads it: each header and each content filled up to four bytes."""
    folders = sorted({path.rpartition("/")[0] for path in files} - {""})
    entries = [(path, 0o040755, b"") for path in folders]
    entries += [(path, 0o100755, content) for path, content in files.items()]
    for number, (path, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name
        yield head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)


def run(*argv: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(argv)[:200]} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}"
        )
    return done.stdout
