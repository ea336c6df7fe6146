"""A direct cable between the two nodes, and the real network managers that rule its ends."""

import json
import subprocess

from testbed import Node

PORTS = ("enp1s0f0np0", "enP2p1s0f0np0")
_FOLDERS = "etc/NetworkManager/system-connections etc/netplan etc/systemd/network home/spark/.ssh etc/group etc/fstab"
# As its owner would compare it: files to the byte, with mode and owner, then what the kernel has.
_SHOWN = f"""cd /; find {_FOLDERS} -type f 2>/dev/null | LC_ALL=C sort | while read -r f; do
  stat -c '%n %a %U' $f; sha256sum <$f; done
for i in {" ".join(PORTS)}; do cat /sys/class/net/$i/mtu; ip -4 -o addr show dev $i; ip -4 route show dev $i; done
ls -A /run/netplan /run/systemd/network /run/NetworkManager/system-connections 2>/dev/null | grep sparkwright
ls /var/lib/sparkwright 2>/dev/null; exit 0"""
_UNITS = "NetworkManager systemd-networkd.socket systemd-networkd"
_NM = """[main]
plugins=keyfile
no-auto-default=*
[keyfile]
unmanaged-devices=*,except:interface-name:enp1s0f0*,except:interface-name:enP2p1s0f0*
"""
NETPLAN = "/etc/netplan/01-lan.yaml"
SUDOERS = "/etc/sudoers.d/init"


def plug(nodes: list[Node]) -> None:
    """Both functions of the first cage: a veth pair each, in place of Docker's devices, as new as from the box.

    NetworkManager rules the ports of the first node, networkd with netplan those of the second.
    """
    for node in nodes:
        node.sh("mount -o remount,bind,rw /proc/sys; cd /proc/sys/net/ipv6/conf; echo 0 | tee */disable_ipv6")
        for number, name in enumerate(PORTS):
            node.sh(f"ip link set {name} down; ip link set {name} name kept{number}")
        node.write(SUDOERS, "spark ALL=(root) NOPASSWD: ALL\n", mode="440")
    one, other = (pid1(node) for node in nodes)
    for name in PORTS:
        far = ("peer", "name", name, "netns", other)
        subprocess.run(("ip", "link", "add", name, "netns", one, "type", "veth", *far), check=True, capture_output=True)
    for node in nodes:
        node.sh(f"for i in {' '.join(PORTS)}; do ip link set $i up; done; systemctl unmask -q {_UNITS}")
    nodes[0].write("/etc/NetworkManager/conf.d/90-test.conf", _NM)
    nodes[0].sh("systemctl start NetworkManager && nm-online -s -q")
    nodes[1].write(NETPLAN, "network: {version: 2, renderer: networkd}\n", mode="600")
    nodes[1].sh("systemctl start systemd-networkd")


def unplug(nodes: list[Node]) -> None:
    """Docker's devices as they were, and nothing that rules them."""
    for node in nodes:
        node.sh("sh /var/lib/sparkwright/fabric/rollback.sh now", check=False)
        node.sh(
            f"systemctl stop {_UNITS}; systemctl mask -q {_UNITS.replace('systemd-networkd.socket ', '')}", check=False
        )
        node.sh("rm -rf /etc/NetworkManager/system-connections/* /run/netplan /run/systemd/network")
        node.sh(f"rm -f /etc/netplan/* /etc/systemd/network/* /etc/NetworkManager/conf.d/90-test.conf {SUDOERS}")
        for number, name in enumerate(PORTS):
            node.sh(f"ip link del {name}", check=False)
            node.sh(f"ip link set kept{number} name {name}; ip link set {name} up", check=False)


def pid1(node: Node) -> str:
    found = json.loads(node._daemon.docker("inspect", node.spec.container))
    return str(found[0]["State"]["Pid"])


def settings(nodes: list[Node]) -> list[str]:
    return [node.sh(_SHOWN) for node in nodes]
