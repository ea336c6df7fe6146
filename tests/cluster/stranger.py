"""Somebody else on the management network: a network namespace of its own on the testbed's bridge."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from testbed import Testbed

_NAME = "sw-stranger"
# Ports of one address that take a connection. A refused one answers at once; another is waited for.
_SCAN = """
import json, socket, sys
found = []
for port in range(1, 65536):
    with socket.socket() as link:
        link.settimeout(5)
        if link.connect_ex((sys.argv[1], port)) == 0:
            found.append(port)
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Stranger:
    namespace: str

    def argv(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *words]

    def run(self, *words: str, timeout: float = 30) -> str:
        return subprocess.run(self.argv(*words), capture_output=True, text=True, timeout=timeout, check=False).stdout

    def open_ports(self, address: str) -> Sequence[int]:
        """All TCP ports of the address that can be reached from here."""
        found: list[int] = json.loads(self.run(sys.executable, "-c", _SCAN, address, timeout=300))
        return found


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


@contextlib.contextmanager
def stranger(testbed: Testbed) -> Iterator[Stranger]:
    """A stranger with an address of its own, and no other way in than the bridge."""
    network = testbed.settings.networks[0]
    suffix = testbed.settings.subnet.rpartition(".")[2]
    name, outer, inner = f"{_NAME}-{suffix}", f"swx{suffix}o", f"swx{suffix}i"
    _ip("netns", "delete", name, check=False)
    _ip("netns", "add", name)
    try:
        _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
        _ip("link", "set", outer, "master", network.bridge, "up")
        _ip("-n", name, "address", "add", f"{testbed.settings.subnet}.70.99/24", "dev", inner)
        _ip("-n", name, "link", "set", inner, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        yield Stranger(name)
    finally:
        _ip("netns", "delete", name, check=False)
        _ip("link", "delete", outer, check=False)
