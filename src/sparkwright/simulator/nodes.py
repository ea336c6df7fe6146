"""Two simulated GB10 nodes in a folder of this machine: own home, own /proc and /sys, own nvidia-smi, rdma and ip.

What they print has the real formats with figures of our own; everything is marked simulated.
Fabric addresses are loopback addresses, so that the ranks of an engine really talk over TCP and nothing leaves.
"""

import os
import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path

from sparkwright.domain.cluster import Cluster, Fabric, Node

NAMES = ("spark-1", "spark-2")
_DEVICES = (("rocep1s0f0", "enp1s0f0np0", 100), ("roceP2p1s0f0", "enP2p1s0f0np0", 101))
_PROGRAMS = ("nvidia-smi", "rdma", "ip", "docker", "uname")


def make_cluster(root: Path) -> Cluster:
    """Writes the nodes' files below root and gives the cluster of them."""
    nodes = tuple(_node(root / name, name, number) for number, name in enumerate(NAMES, 1))
    return Cluster(name="simulated", nodes=nodes, head=NAMES[0], source="embedded", simulated=True)


def lend_caddy(root: Path) -> None:
    """Put the Caddy of this machine, or of this environment, on the head's PATH; the head has none without one."""
    found = shutil.which("caddy", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}")
    if found:
        (root / NAMES[0] / "bin" / "caddy").symlink_to(found)


def _node(root: Path, name: str, number: int) -> Node:
    home, system, programs = root / "home", root / "system", root / "bin"
    for folder in (home, root / "lock"):
        folder.mkdir(parents=True, exist_ok=True)
    _write_system(system, name, number)
    _write_programs(programs, number)
    env = {
        "HOME": str(home),
        "PATH": f"{programs}:{os.defpath}:/usr/sbin:/sbin",
        "SPARKWRIGHT_SYSROOT": str(system),
        "SPARKWRIGHT_LOCK_DIR": str(root / "lock"),
    }
    device, netdev, subnet = _DEVICES[0]
    # Given, not found: loopback addresses are never taken for a fabric by themselves.
    fabric = Fabric(_address(subnet, number), netdev, (device, _DEVICES[1][0]))
    return Node(name, "local", fabric, env=tuple(env.items()))


def _address(subnet: int, number: int) -> str:
    return f"127.0.{subnet}.{number}"


def _write_system(system: Path, name: str, number: int) -> None:
    files = {
        "proc/meminfo": _text("meminfo", free=112_000_000 - number * 900_000, available=118_400_000 - number * 900_000),
        "proc/sys/kernel/hostname": f"{name}\n",
        "proc/sys/kernel/random/boot_id": f"00000000-0000-4000-8000-00000000000{number}\n",
        "etc/machine-id": f"{number:032x}\n",
        "etc/dgx-release": 'DGX_NAME="DGX Spark"\nDGX_PLATFORM="simulated"\nDGX_OTA_VERSION="7.6.0"\n',
        "sys/class/dmi/id/sys_vendor": "sparkwright\n",
        "sys/class/dmi/id/product_name": "simulated GB10\n",
    }
    for device, netdev, subnet in _DEVICES:
        files |= _gids(device, netdev, _address(subnet, number))
    for path, text in files.items():
        _write(system / path, text)


def _gids(device: str, netdev: str, address: str) -> dict[str, str]:
    """Port 1 of an RDMA device in sysfs: a link-local and an IPv4 GID, each as RoCE v1 and v2."""
    octets = [int(part) for part in address.split(".")]
    ipv4 = "0000:0000:0000:0000:0000:ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(*octets)
    link = "fe80:0000:0000:0000:0000:00ff:fe00:{:02x}{:02x}".format(*octets[2:])
    port = f"sys/class/infiniband/{device}/ports/1"
    files = {f"{port}/state": "4: ACTIVE\n", f"{port}/phys_state": "5: LinkUp\n"}
    for index, (gid, kind) in enumerate(((link, 1), (link, 2), (ipv4, 1), (ipv4, 2))):
        files[f"{port}/gids/{index}"] = f"{gid}\n"
        files[f"{port}/gid_attrs/types/{index}"] = "RoCE v2\n" if kind == 2 else "IB/RoCE v1\n"
        files[f"{port}/gid_attrs/ndevs/{index}"] = f"{netdev}\n"
    return files


def _text(name: str, **values: object) -> str:
    text = (files("sparkwright.simulator") / "texts" / f"node-{name}.txt").read_text(encoding="utf-8")
    return re.sub("@([A-Z]+)@", lambda found: str(values[found[1].lower()]), text)


def _write_programs(folder: Path, number: int) -> None:
    for name in _PROGRAMS:
        _write(folder / name, _text(name, number=number))
        (folder / name).chmod(0o755)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
