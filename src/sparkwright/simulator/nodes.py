"""Two simulated GB10 nodes in a folder of this machine: own home, own /proc and /sys, own nvidia-smi, rdma and ip.

What they print has the real formats with figures of our own; everything is marked simulated.
Fabric addresses are loopback addresses, so that the ranks of an engine really talk over TCP and nothing leaves.
"""

import os
from pathlib import Path

from sparkwright.domain.cluster import Cluster, Fabric, Node

NAMES = ("spark-1", "spark-2")
_DEVICES = (("rocep1s0f0", "enp1s0f0np0", 100), ("roceP2p1s0f0", "enP2p1s0f0np0", 101))
_DRIVER = "580.142"
_MEMINFO = """MemTotal:       127535084 kB
MemFree:        {free} kB
MemAvailable:   {available} kB
Buffers:          214312 kB
Cached:          6120448 kB
SwapCached:            0 kB
AnonPages:       3214712 kB
Shmem:             41208 kB
Slab:            1104220 kB
SReclaimable:     641220 kB
SUnreclaim:       463000 kB
KernelStack:       21456 kB
PageTables:        38120 kB
SecPageTables:      4120 kB
SwapTotal:      16777212 kB
SwapFree:       16777212 kB
Percpu:            27520 kB
CmaTotal:         131072 kB
CmaFree:           69320 kB
HugePages_Total:       0
HugePages_Free:        0
Hugepagesize:       2048 kB
Hugetlb:               0 kB
"""
_NVIDIA_SMI = """#!/bin/sh
# Simulated by sparkwright: what nvidia-smi prints on a GB10.
case "$*" in
*query-compute-apps*) echo 'pid, process_name, used_gpu_memory [MiB]' ;;
*query-gpu*)
  q=$(printf '%s\\n' "$@" | sed -n 's/^--query-gpu=//p')
  h=; v=; oldifs=$IFS; IFS=,
  for f in $q; do
    case $f in name) x='NVIDIA GB10' ;; driver_version) x={driver} ;; compute_cap) x=12.1 ;;
      temperature.gpu) x=41 ;; power.draw) x='4.11 W' ;; clocks.sm) x='2411 MHz' ;; utilization.gpu) x='0 %' ;;
      *) x='[N/A]' ;; esac
    h="$h${{h:+, }}$f"; v="$v${{v:+, }}$x"
  done; IFS=$oldifs
  case "$*" in *noheader*) ;; *) echo "$h" ;; esac; echo "$v" ;;
-q*) printf '%-42s: {driver}\\n' 'Driver Version' '    GSP Firmware Version' ;;
esac
"""
_RDMA = """#!/bin/sh
# Simulated by sparkwright: one cable in port 0, both functions of the port pair up.
cat <<'END'
link rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev enp1s0f0np0
link rocep1s0f1/1 state DOWN physical_state DISABLED netdev enp1s0f1np1
link roceP2p1s0f0/1 state ACTIVE physical_state LINK_UP netdev enP2p1s0f0np0
link roceP2p1s0f1/1 state DOWN physical_state DISABLED netdev enP2p1s0f1np1
END
"""
_IP = """#!/bin/sh
# Simulated by sparkwright: the two netdevs of one cage, each with an address in a subnet of its own.
cat <<'END'
[{{"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"operstate":"UNKNOWN",
"addr_info":[{{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"}}]}},
{interfaces}]
END
"""
_INTERFACE = (
    '{{"ifname":"{netdev}","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":9000,"operstate":"UP",'
    '"addr_info":[{{"family":"inet","local":"{address}","prefixlen":24,"scope":"global"}}]}}'
)
_NO_DOCKER = "#!/bin/sh\n# Simulated by sparkwright: these nodes have no Docker; ranks are processes.\nexit 0\n"
_UNAME = """#!/bin/sh
# Simulated by sparkwright.
case "$1" in -m) echo aarch64 ;; -r) echo 6.14.0-1015-nvidia ;; *) echo Linux ;; esac
"""


def make_cluster(root: Path) -> Cluster:
    """Writes the nodes' files below root and gives the cluster of them."""
    nodes = tuple(_node(root / name, name, number) for number, name in enumerate(NAMES, 1))
    return Cluster(name="simulated", nodes=nodes, head=NAMES[0], source="embedded", simulated=True)


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
        "proc/meminfo": _MEMINFO.format(free=112_000_000 - number * 900_000, available=118_400_000 - number * 900_000),
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


def _write_programs(folder: Path, number: int) -> None:
    rows = [_INTERFACE.format(netdev=netdev, address=_address(subnet, number)) for _, netdev, subnet in _DEVICES]
    programs = {
        "nvidia-smi": _NVIDIA_SMI.format(driver=_DRIVER),
        "rdma": _RDMA,
        "ip": _IP.format(interfaces=",\n".join(rows)),
        "docker": _NO_DOCKER,
        "uname": _UNAME,
    }
    for name, text in programs.items():
        _write(folder / name, text)
        (folder / name).chmod(0o755)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
