"""The gateway's proxy on the nodes: the wheel's, as Debian's own is too old (it makes cut streams look whole)."""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.node import ContainerNode
from testbed.settings import REPOSITORY

AT = "/usr/local/bin/caddy"


def install(node: ContainerNode) -> None:
    """The one of this checkout's .venv: nodes have this machine's processor."""
    binary = (REPOSITORY / ".venv/bin/caddy").read_bytes()
    if node.sh(f"stat -c %s {AT} 2>/dev/null", check=False) != str(len(binary)):
        node.put(f"{AT}.new", binary, user="root")
        node.sh(f"chmod 755 {AT}.new && mv {AT}.new {AT}")


@contextmanager
def in_an_image(node: ContainerNode) -> Iterator[None]:
    """Takes the program `caddy` off the node while open, and gives it an image caddy:2 with nothing else in it."""
    tree = "/opt/caddy-image"
    node.sh(f"mkdir -p {tree}/usr/bin {tree}/tmp && mv {AT} {tree}/usr/bin/caddy")
    node.sh(f"tar -C {tree} -c . | docker import - caddy:2")
    try:
        yield
    finally:
        node.sh(f"mv {tree}/usr/bin/caddy {AT}; rm -rf {tree}; docker image rm --force caddy:2")
