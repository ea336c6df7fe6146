"""The front door's proxy on the nodes: the wheel's, as Debian's own is too old (it makes cut streams look whole)."""

from testbed.node import Node
from testbed.settings import REPOSITORY

AT = "/usr/local/bin/caddy"


def bring(node: Node) -> None:
    """The one of this checkout's .venv: nodes have this machine's processor."""
    binary = (REPOSITORY / ".venv/bin/caddy").read_bytes()
    if node.sh(f"stat -c %s {AT} 2>/dev/null", check=False) != str(len(binary)):
        node.put(f"{AT}.new", binary, user="root")
        node.sh(f"chmod 755 {AT}.new && mv {AT}.new {AT}")
