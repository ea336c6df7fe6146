"""A direct cable between the two nodes, and the real network managers that rule its ends."""

import subprocess

from testbed import Node

PORTS = ("enp1s0f0np0", "enP2p1s0f0np0")
_DOCKERS = "kept"  # what Docker's own devices are called meanwhile
NM_CONF = """\
[main]
plugins=keyfile
[keyfile]
unmanaged-devices=except:interface-name:enp1s0f*,except:interface-name:enP2p1s0f*
"""
SUDOERS = "/etc/sudoers.d/init"
CONFIGURATION = (
    "cd / && find etc/NetworkManager/system-connections etc/netplan etc/systemd/network home/spark/.ssh"
    " etc/group etc/fstab -type f 2>/dev/null | sort | xargs -r stat -c '%n %a %U' &&"
    " find etc/NetworkManager/system-connections etc/netplan etc/systemd/network home/spark/.ssh"
    " etc/group etc/fstab -type f 2>/dev/null | sort | xargs -r sha256sum"
)
STATE = "for i in enp1s0f0np0 enP2p1s0f0np0; do cat /sys/class/net/$i/mtu; ip -4 -o addr show dev $i; done; ip -4 route"


def pid(node: Node) -> str:
    return node._daemon.docker("inspect", "--format", "{{.State.Pid}}", node.spec.container)


def plug(nodes: list[Node]) -> None:
    """Both functions of the first cage: a veth pair each, in place of Docker's devices, as new as from the box."""
    for node in nodes:
        node.sh("mount -o remount,bind,rw /proc/sys; cd /proc/sys/net/ipv6/conf; echo 0 | tee */disable_ipv6")
        for number, name in enumerate(PORTS):
            node.sh(f"ip link set {name} down; ip link set {name} name {_DOCKERS}{number}")
    one, other = (pid(node) for node in nodes)
    for name in PORTS:
        far = ("peer", "name", name, "netns", other)
        subprocess.run(("ip", "link", "add", name, "netns", one, "type", "veth", *far), check=True, capture_output=True)
    for node in nodes:
        node.sh(f"for i in {' '.join(PORTS)}; do ip link set $i up; done")


def unplug(nodes: list[Node]) -> None:
    """Docker's devices as they were."""
    for node in nodes:
        for number, name in enumerate(PORTS):
            node.sh(
                f"ip link del {name} 2>/dev/null; ip link set {_DOCKERS}{number} name {name} && ip link set {name} up"
            )
