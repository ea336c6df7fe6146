"""Troubles of a node that last until they are taken back, or until the next reset."""

from testbed.node import STATE, ContainerNode

HOME = "/home/spark"
MEMORY = """[Service]
ExecStart=/usr/local/sbin/node-memory {} {}

[Install]
WantedBy=multi-user.target
"""


def live_memory(node: ContainerNode, available_gib: float, claim_gib: float) -> None:
    """MemAvailable is `available_gib` without a rank; each rank takes `claim_gib` and what it really holds."""
    unit = MEMORY.format(int(available_gib * 1024**2), int(claim_gib * 1024**2))
    node.write("/etc/systemd/system/testbed-memory.service", unit)  # a reboot must not make memory stand still
    node.sh("systemctl daemon-reload; systemctl enable --quiet testbed-memory; systemctl restart testbed-memory")


def steal_port(node: ContainerNode, port: int) -> None:
    """Some other program has it from the moment on that it is free."""
    run_unit(node, "thief", "node-thief", str(port))


def give_port_back(node: ContainerNode) -> None:
    node.exec(["systemctl", "stop", "testbed-thief"])


def run_unit(node: ContainerNode, name: str, *argv: str) -> None:
    """A program of root's that runs until the node is reset."""
    node.exec(["systemd-run", "--quiet", "--collect", f"--unit=testbed-{name}", *argv])


def cut_ssh(node: ContainerNode, other: ContainerNode) -> None:
    """`other` no longer reaches this node's sshd by any network; everything else goes on."""
    for address in (other.mgmt, other.fabric, other.fabric_b):
        node.exec(["iptables", "-I", "INPUT", "-p", "tcp", "--dport", "22", "-s", address, "-j", "DROP"])


def restore_ssh(node: ContainerNode) -> None:
    node.exec(["iptables", "-F", "INPUT"])


def change_host_keys(node: ContainerNode) -> None:
    """Changes the host keys as a reinstallation does; connections of the ssh user end, so that everybody has to connect
    again."""
    node.sh("mkdir -p /root/host-keys && cp -a /etc/ssh/ssh_host_* /root/host-keys")
    node.sh("rm /etc/ssh/ssh_host_* && ssh-keygen -A && systemctl restart ssh && { pkill -f '[s]shd: spark' || :; }")


def restore_host_keys(node: ContainerNode) -> None:
    node.sh("rm /etc/ssh/ssh_host_* && cp -a /root/host-keys/* /etc/ssh && systemctl restart ssh")
    node.sh("rm -r /root/host-keys; pkill -f '[s]shd: spark' || :")


def set_fabric(node: ContainerNode, *, up: bool) -> None:
    """Both functions of the first cage: as if the cable were pulled."""
    for address, device in node.spec.devices[1:]:
        node.set_link(device, up=up)
        if up:
            node.sh(f"ip addr show {device} | grep -q {address} || ip addr add {address}/24 dev {device}")


def small_state(node: ContainerNode, size: str = "64m") -> None:
    """The state folder on a file system of its own, so that it can be full (`fill_state`)."""
    node.sh(f"mkdir -p {STATE}", user="spark")
    node.fill_disk(f"{HOME}/{STATE}", 1 << 40, size)


def fill_state(node: ContainerNode) -> None:
    node.fill_disk(f"{HOME}/{STATE}", 0)


def empty_state(node: ContainerNode) -> None:
    node.sh(f"rm {HOME}/{STATE}/.ballast")


def user_units(node: ContainerNode) -> list[str]:
    """The units of the user's systemd that `up` has left there."""
    rows = _systemctl(node, "list-units --no-legend --plain 'sparkwright-*'").splitlines()
    return [row.split()[0] for row in rows if row]


def kill_unit(node: ContainerNode, unit: str) -> None:
    """SIGKILL to the unit's main process; systemd restarts it."""
    node.sh(f"kill -9 {main_pid(node, unit)}")


def main_pid(node: ContainerNode, unit: str) -> str:
    """The pid of a user's unit, `0` while it does not run."""
    return _systemctl(node, f"show --property MainPID --value {unit}").strip()


def _systemctl(node: ContainerNode, words: str) -> str:
    return node.sh(f"XDG_RUNTIME_DIR=/run/user/1000 systemctl --user {words}", user="spark")
