"""A direct cable between the two nodes, and the real network managers that rule its ends."""

import json
import subprocess
from collections.abc import Sequence

from testbed import ContainerNode

PORTS = ("enp1s0f0np0", "enP2p1s0f0np0")
_CAGES = "$(cd /sys/class/net; ls -d en*p1s0f?np? 2>/dev/null)"
_FOLDERS = "etc/NetworkManager/system-connections etc/netplan etc/systemd/network home/spark/.ssh etc/group etc/fstab"
# As its owner would compare it: files to the byte, with mode and owner, then what the kernel has.
_SHOWN = f"""cd /; find {_FOLDERS} -type f 2>/dev/null | LC_ALL=C sort | while read -r f; do
  stat -c '%n %a %U' $f; sha256sum <$f; done
for i in {_CAGES}; do cat /sys/class/net/$i/mtu; ip -4 -o addr show dev $i; ip -4 route show dev $i; done
ls -A /run/netplan /run/systemd/network /run/NetworkManager/system-connections 2>/dev/null | grep sparkwright
ls /var/lib/sparkwright 2>/dev/null; exit 0"""
_UNITS = "NetworkManager systemd-networkd.socket systemd-networkd"
_NM = """[main]
plugins=keyfile
no-auto-default=*
[keyfile]
unmanaged-devices=*,except:interface-name:enp1s0f*,except:interface-name:enP2p1s0f*
"""
NETPLAN = "/etc/netplan/01-lan.yaml"
SUDOERS = "/etc/sudoers.d/init"
# (node, cage) of both ends.
PAIR = (((0, 0), (1, 0)),)
RING = (((0, 0), (1, 1)), ((1, 0), (2, 1)), ((2, 0), (0, 1)))


def plug_cables(nodes: list[ContainerNode], cables: Sequence[tuple[tuple[int, int], ...]] = PAIR) -> None:
    """Both functions of each cage: a veth pair each, in place of Docker's devices, as new as from the box.

    NetworkManager rules the ports of the first node, networkd with netplan those of the others.
    """
    for node in nodes:
        node.sh("mount -o remount,bind,rw /proc/sys; cd /proc/sys/net/ipv6/conf; echo 0 | tee */disable_ipv6")
        for number, name in enumerate(PORTS):
            node.sh(f"ip link set {name} down; ip link set {name} name kept{number}")
        node.sh(f"for i in {_CAGES}; do ip link del $i; done", check=False)  # the second cage's dead ports
        node.write(SUDOERS, "spark ALL=(root) NOPASSWD: ALL\n", mode="440")
    pids = [init_pid(node) for node in nodes]
    for (one, cage), (other, far_cage) in cables:
        for domain in ("", "P2"):
            name, far = (f"en{domain}p1s0f{number}np{number}" for number in (cage, far_cage))
            link = ("ip", "link", "add", name, "netns", pids[one], "type", "veth", "peer", "name", far)
            subprocess.run((*link, "netns", pids[other]), check=True)
    nodes[0].sh(f"for i in {_CAGES}; do ip link set $i up; done")
    for node in nodes:
        node.sh(f"systemctl unmask -q {_UNITS}")
    nodes[0].write("/etc/NetworkManager/conf.d/90-test.conf", _NM)
    nodes[0].sh("systemctl start NetworkManager && nm-online -s -q")
    for node in nodes[1:]:
        node.write(NETPLAN, "network: {version: 2, renderer: networkd}\n", mode="600")
        node.sh("systemctl start systemd-networkd")


def unplug(nodes: list[ContainerNode]) -> None:
    """Docker's devices as they were, and nothing that rules them."""
    for node in nodes:
        node.sh("sh /var/lib/sparkwright/fabric/rollback.sh now", check=False)
        node.sh(
            f"systemctl stop {_UNITS}; systemctl mask -q {_UNITS.replace('systemd-networkd.socket ', '')}", check=False
        )
        node.sh("rm -rf /etc/NetworkManager/system-connections/* /run/netplan /run/systemd/network")
        node.sh(f"rm -f /etc/netplan/* /etc/systemd/network/* /etc/NetworkManager/conf.d/90-test.conf {SUDOERS}")
        node.sh(f"for i in {_CAGES}; do ip link del $i; done", check=False)
        for number, name in enumerate(PORTS):
            node.sh(f"ip link set kept{number} name {name}; ip link set {name} up", check=False)
        node.sh("node-net")


def init_pid(node: ContainerNode) -> str:
    found = json.loads(node._daemon.docker("inspect", node.spec.container))
    return str(found[0]["State"]["Pid"])


def settings(nodes: list[ContainerNode]) -> list[str]:
    return [node.sh(_SHOWN) for node in nodes]


def addresses(nodes: list[ContainerNode]) -> list[list[str]]:
    each = "cd /sys/class/net; for i in en*p1s0f?np?; do ip -4 -o addr show dev $i; done | awk '{print $4}'"
    return [node.sh(each).split() for node in nodes]
