"""A cluster file's text for nodes that `init` has prepared."""

import re
from collections.abc import Sequence
from ipaddress import ip_address

from sparkwright.domain.cluster import Cluster, Fabric, Node
from sparkwright.domain.errors import UsageError
from sparkwright.recipes.edit_file import WAKE_MARK

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def node_of(text: str, number: int) -> Node:
    """A node from `[NAME=]DESTINATION`. number: from 1, for the name of one that is given by its address."""
    given, equals, rest = text.rpartition("=")
    destination = rest.strip()
    host = destination.removeprefix("ssh://").rpartition("@")[2].partition("/")[0]
    name = given if equals else _short(host, number)
    if not destination or destination.startswith("-") or not _NAME.fullmatch(name):
        raise UsageError(f"found {text!r}, expected [NAME=]HOST or [NAME=]USER@HOST", "for example spark-1=ai@10.0.0.5")
    return Node(name, destination)


def cluster_text(cluster: Cluster) -> str:
    """The text for the loader: only values that differ from the defaults."""
    lines = [f"name: {cluster.name}", f"head: {cluster.head}", "nodes:"]
    for node in cluster.nodes:
        lines += [f"  - name: {node.name}", *([f"    ssh: {_quoted(node.ssh)}"] if node.ssh != node.name else [])]
        lines += _fabric(node.fabric)
        lines += [f'    wake: "{node.wake}" # {WAKE_MARK}'] if node.wake else []
    return "\n".join(lines) + "\n"


def _fabric(fabric: Fabric) -> Sequence[str]:
    if fabric.address is None or fabric.interface is None:
        return ()
    return (f"    fabric: {{address: {fabric.address}, interface: {fabric.interface}}}",)


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z][A-Za-z0-9@._-]*", text) else "'" + text.replace("'", "''") + "'"


def _short(host: str, number: int) -> str:
    """`spark-1` of `spark-1.local` and of `spark-1:22`; `spark-NUMBER` for an address."""
    try:
        ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host.partition(":")[0].partition(".")[0]
    return f"spark-{number}"
