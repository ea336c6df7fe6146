"""The image of two machines like a DGX Spark from the box: Ubuntu 24.04 with its own kernel, netplan, NetworkManager,
Docker and a swap file. The GPU is a fixture: a nvidia-smi that shows a GB10.

Packages come from Ubuntu's mirror, once, over http and unsigned: nothing of them is run but in the machines.
"""

import hashlib
import os
import shutil
from pathlib import Path

from fakes.sshd import make_key
from testbed.fixtures import shim_files
from testbed.settings import OVERLAY, NodeSpec
from vm.image import MIB, PATH, make_disk, run

MIRROR = os.environ.get("SPARKWRIGHT_UBUNTU_MIRROR", "http://archive.ubuntu.com/ubuntu")
SUITE = "noble"
PACKAGES = (
    *("systemd", "systemd-sysv", "udev", "dbus", "libpam-systemd", "polkitd", "sudo", "kmod", "procps"),
    *("openssh-server", "openssh-client", "network-manager", "netplan.io", "docker.io", "iproute2", "iputils-ping"),
    "python3",
)
PASSWORD = "from-the-box"
# By the address of the card, as udev names them on a GB10 by their place on the bus.
CARDS = {"52:54:00:00:00": "enP7s7", "52:54:00:00:01": "enp1s0f0np0", "52:54:00:00:02": "enP2p1s0f0np0"}
_FSTAB = "/dev/vda / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n"
# Which of the two it is comes from the kernel's command line, once, before systemd.
_BOOT = """#!/bin/sh
if [ ! -e /etc/machine-id ] || [ ! -s /etc/machine-id ]; then
  mount -o remount,rw /; mount -t proc proc /proc
  read -r line </proc/cmdline
  for word in $line; do case $word in node=*) n=${word#node=} ;; esac; done
  echo "spark-$n" >/etc/hostname; mv /etc/testbed/netplan-$n.yaml /etc/netplan/01-lan.yaml
  cat /proc/sys/kernel/random/uuid | tr -d - >/etc/machine-id; umount /proc
  ssh-keygen -q -A; fallocate -l 256M /swap.img; chmod 600 /swap.img; mkswap -q /swap.img
fi
exec /sbin/init
"""
# Of some hundred megabytes of further drivers, that of the watchdog card.
_EXTRA = """cd /tmp && apt-get -qq download "$1" && cd / &&
dpkg-deb --fsys-tarfile /tmp/"$1"_*.deb | tar -x --wildcards '*/drivers/watchdog/i6300esb.ko*'"""
_NETPLAN = {
    1: "network:\n  version: 2\n  renderer: NetworkManager\n",
    2: "network:\n  version: 2\n  renderer: networkd\n  ethernets:\n    enP7s7:\n      dhcp4: true\n",
}


class Ubuntu:
    """folder: everything that is made; a second call with the same definition finds it there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel, self.root, self.key = folder / "vmlinuz", folder / "root.ext4", folder / "key"

    def build(self) -> None:
        made = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        stamp = self.folder / "made"
        if stamp.exists() and stamp.read_text() == made:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        tree = self.folder / "root"
        tree.mkdir(parents=True)
        script = "/usr/share/debootstrap/scripts/jammy"  # Debian 12's debootstrap is older than that Ubuntu
        run(
            "debootstrap",
            "--no-check-gpg",
            "--variant=minbase",
            "--components=main,universe",
            SUITE,
            str(tree),
            MIRROR,
            script,
        )
        self._packages(tree)
        self._kernel(tree)
        self._files(tree)
        make_disk(self.root, tree, 4000 * MIB)
        shutil.rmtree(tree)
        stamp.write_text(made)

    def _packages(self, tree: Path) -> None:
        (tree / "etc/apt/sources.list").write_text(
            "".join(f"deb [trusted=yes] {MIRROR} {suite} main universe\n" for suite in (SUITE, f"{SUITE}-updates"))
        )
        for name in ("resolv.conf", "apt/apt.conf.d"):
            source = Path("/etc") / name
            if source.is_dir():
                shutil.copytree(source, tree / "etc" / name, dirs_exist_ok=True)
            elif source.exists():
                shutil.copyfile(source, tree / "etc" / name)
        policy = tree / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")  # nothing starts in a chroot
        policy.chmod(0o755)
        self._chroot(tree, "apt-get", "-q", "update")
        self._chroot(tree, "apt-get", "-qy", "install", "--no-install-recommends", *PACKAGES)
        policy.unlink()

    def _kernel(self, tree: Path) -> None:
        """Disks, network cards and ext4 are built into Ubuntu's: it needs no initramfs."""
        meta = self._chroot(tree, "apt-cache", "depends", "linux-image-virtual")
        image = next(line.split()[-1] for line in meta.splitlines() if "Depends: linux-image-" in line)
        packages = (image, image.replace("linux-image-", "linux-modules-"))
        self._chroot(
            tree,
            "sh",
            "-c",
            'cd /tmp && apt-get -qq download "$@" && for f in *.deb; do dpkg -x $f /; done',
            "sh",
            *packages,
        )
        extra = image.replace("linux-image-", "linux-modules-extra-")
        self._chroot(tree, "sh", "-c", _EXTRA, "sh", extra)
        (kernel,) = tree.glob("boot/vmlinuz-*")
        shutil.copyfile(kernel, self.kernel)
        self._chroot(tree, "depmod", kernel.name.removeprefix("vmlinuz-"))
        for waste in ("tmp", "boot", "var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
            shutil.rmtree(tree / waste, ignore_errors=True)
        (tree / "tmp").mkdir(mode=0o1777)
        (tree / "tmp").chmod(0o1777)

    def _files(self, tree: Path) -> None:
        self._chroot(tree, "useradd", "-m", "-u", "1000", "-s", "/bin/bash", "spark")
        public = make_key(self.key).with_suffix(".pub").read_text()
        texts = {
            "home/spark/.ssh/authorized_keys": public,
            "etc/sudoers.d/spark": "spark ALL=(ALL) NOPASSWD: ALL\n",
            "etc/fstab": _FSTAB,
            "etc/sysctl.d/60-strict.conf": "vm.overcommit_memory = 2\nvm.overcommit_ratio = 400\n",
            "etc/ssh/sshd_config.d/vm.conf": "UseDNS no\nGSSAPIAuthentication no\n",
            **{f"etc/testbed/netplan-{number}.yaml": text for number, text in _NETPLAN.items()},
            **{
                f"etc/systemd/network/10-{name}.link": f"[Match]\nMACAddress={mac}:01 {mac}:02\n[Link]\nName={name}\n"
                for mac, name in CARDS.items()
            },
        }
        for path, text in texts.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        for number in _NETPLAN:
            (tree / f"etc/testbed/netplan-{number}.yaml").chmod(0o600)
        (tree / "etc/sudoers.d/spark").chmod(0o440)
        (tree / "sbin/node-boot").write_text(_BOOT)
        (tree / "sbin/node-boot").chmod(0o755)
        self._gpu(tree)
        run("chown", "-R", "1000:1000", str(tree / "home/spark"))
        (tree / "home/spark/.ssh").chmod(0o700)
        (tree / "etc/machine-id").unlink(missing_ok=True)
        for one in (tree / "etc/ssh").glob("ssh_host_*"):
            one.unlink()

    def _gpu(self, tree: Path) -> None:
        home = tree / "opt/shims"
        shutil.copytree(OVERLAY / "opt/shims", home)
        for path, text in shim_files(NodeSpec(1, "10.0")).items():
            if path.startswith("nvidia-smi/"):
                (home / path).parent.mkdir(exist_ok=True)
                (home / path).write_text(text)
        (home / "nvidia-smi/switch").write_text("default\n")
        (tree / "usr/local/bin/nvidia-smi").symlink_to("/opt/shims/shim")

    def _chroot(self, tree: Path, *argv: str) -> str:
        """Runs in a mount namespace of its own, so that nothing stays mounted when the build is killed."""
        script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "PATH": PATH}
        return run("unshare", "--mount", "sh", "-c", script, str(tree), *argv, env=env)
