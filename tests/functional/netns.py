"""Two network namespaces joined by a cable: two nodes for programs that distinguish nodes by address. Takes root."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

MISSING = os.geteuid() != 0 or not shutil.which("ip")


def run_ip_command(*words: str) -> None:
    subprocess.run(("ip", *words), check=True, capture_output=True)


@contextmanager
def two_nodes(tag: str, addresses: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The namespaces' names; each has a loopback and its address (/24) on an interface of its own name."""
    names = (f"{tag}a{os.getpid()}", f"{tag}b{os.getpid()}")
    try:
        for name in names:
            run_ip_command("netns", "add", name)
        run_ip_command(
            "link", "add", "fab0", "netns", names[0], "type", "veth", "peer", "name", "fab1", "netns", names[1]
        )
        for n, (name, address) in enumerate(zip(names, addresses, strict=True)):
            run_ip_command("-n", name, "addr", "add", f"{address}/24", "dev", f"fab{n}")
            run_ip_command("-n", name, "link", "set", "lo", "up")
            run_ip_command("-n", name, "link", "set", f"fab{n}", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True)
