"""A copy through three nodes that have a network, an sshd and processes of their own (namespaces; wants root)."""

import asyncio
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu.two_nodes import NetnsNode, TwoNodes, lacking, run_iproute
from patience import wait_until
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.ssh import SshSettings
from sparkwright.domain.cluster import Cluster, Node, Transfer
from sparkwright.domain.errors import NodeError
from sparkwright.remote import staging
from sparkwright.remote.programs.wire import CUT_OFF

pytestmark = pytest.mark.full

SIZE, FILES = 24 << 20, 3
BRIDGE = "sparkwbr"


class ThreeNodes(TwoNodes):
    """Three nodes on one switch."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.nodes = [NetnsNode(f"spark-{k}", k, folder / f"spark-{k}") for k in (1, 2, 3)]

    def _cable(self) -> None:
        run_iproute("link", "add", BRIDGE, "type", "bridge")
        run_iproute("link", "set", BRIDGE, "up")
        for node in self.nodes:
            process, name, port = node.first_process(), f"sparkw{node.number}", f"sparkf{node.number}"
            run_iproute("link", "add", port, "mtu", "9000", "type", "veth", "peer", "name", "fab0", "netns", process)
            run_iproute("link", "set", port, "master", BRIDGE, "up")
            run_iproute("link", "add", name, "type", "veth", "peer", "name", "mgmt0", "netns", process)
            run_iproute("address", "add", f"10.77.{node.number}.1/30", "dev", name)
            run_iproute("link", "set", name, "up")

    def _write_config(self, key: Path) -> None:
        """The nodes log in to each other with keys of their own."""
        super()._write_config(key)
        for node in self.nodes:
            own = node.folder / "keys" / "id_ed25519"
            own.write_bytes(key.read_bytes())
            own.chmod(0o600)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True)


@pytest.fixture
def three_nodes() -> Iterator[ThreeNodes]:
    """The nodes' folders are below /var/tmp: each node has a /tmp of its own."""
    if missing := lacking():
        pytest.skip(", ".join(missing))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, ThreeNodes(Path(folder) / "nodes") as found:
        model = found.nodes[0].folder / "models" / "m"
        model.mkdir()
        for number in range(FILES):
            (model / f"{number}.safetensors").write_bytes(os.urandom(SIZE))
        yield found


def model_folder(node: NetnsNode) -> Path:
    return node.folder / "models" / "m"


def shard_checksums(node: NetnsNode) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(model_folder(node).glob("*.safetensors"))]


def fabric_bytes_sent(nodes: ThreeNodes, name: str) -> int:
    """Bytes that left the node over the fabric."""
    return int(nodes.call(name, "sed -n 's/ *fab0: *//p' /proc/net/dev").stdout.split()[8])


async def copied(nodes: ThreeNodes, limit: int = 0) -> list[int | BaseException]:
    """Exit codes of both links of the chain, or why there is none."""
    cluster = Cluster("three", tuple(Node(n.name, n.name) for n in nodes.nodes), "spark-1")
    hosts = ClusterHosts(cluster, SshSettings(config=nodes.config))

    async def link(number: int) -> int:
        here, there = nodes.nodes[number], nodes.nodes[number + 1]
        key = there.host_line().split(" ", 1)[1].strip()
        peer = staging.Peer("root", there.fabric, 22, staging.known_hosts(there.fabric, 22, [key]))
        chain = staging.Chain("m", follows=number > 0, leads=number == 0)
        push = staging.push_tree(str(model_folder(here)), str(model_folder(there)), peer, Transfer(2, limit), chain)
        done = await hosts[here.name].run(push)
        return done.exit_code

    async def second() -> int:
        while not list(model_folder(nodes.nodes[1]).glob(".sparkwright-partial/*.plan")):
            await asyncio.sleep(0.05)
        return await link(1)

    try:
        return list(await asyncio.gather(link(0), second(), return_exceptions=True))
    finally:
        await hosts.close()


async def test_the_source_sends_once(three_nodes: ThreeNodes) -> None:
    """Both others have every byte, and what left the first node is one copy: the second sends it on as it comes."""
    before = [fabric_bytes_sent(three_nodes, node.name) for node in three_nodes.nodes]
    assert await copied(three_nodes) == [0, 0]
    assert (
        shard_checksums(three_nodes.nodes[0])
        == shard_checksums(three_nodes.nodes[1])
        == shard_checksums(three_nodes.nodes[2])
    )
    took = [
        fabric_bytes_sent(three_nodes, node.name) - was for node, was in zip(three_nodes.nodes, before, strict=True)
    ]
    whole = SIZE * FILES
    assert whole <= took[0] < 1.2 * whole and whole <= took[1] < 1.2 * whole and took[2] < 0.2 * whole


async def test_the_middle_node_s_link_fails_for_a_while(three_nodes: ThreeNodes) -> None:
    """The copy continues when it is back, and all of it arrives on both."""
    copy = asyncio.create_task(copied(three_nodes, 20_000_000))
    partial = model_folder(three_nodes.nodes[2]) / ".sparkwright-partial"
    await asyncio.to_thread(wait_until, lambda: list(partial.glob("*.journal")), "a journal on the third node")
    three_nodes.call("spark-2", "ip link set fab0 down; sleep 3; ip link set fab0 up")
    assert await copy == [0, 0]
    assert (
        shard_checksums(three_nodes.nodes[0])
        == shard_checksums(three_nodes.nodes[1])
        == shard_checksums(three_nodes.nodes[2])
    )


async def test_the_middle_node_is_gone(three_nodes: ThreeNodes) -> None:
    """Both links end with a reason for it, and what has a final name on the last node is whole."""
    copy = asyncio.create_task(copied(three_nodes, 3_000_000))
    partial = model_folder(three_nodes.nodes[2]) / ".sparkwright-partial"
    await asyncio.to_thread(wait_until, lambda: list(partial.glob("*.journal")), "a journal on the third node")
    middle = three_nodes.nodes[1].process
    assert middle
    middle.kill()
    first, second = await copy
    assert first in (CUT_OFF, 255) and isinstance(second, NodeError) and "spark-2" in str(second)
    last = shard_checksums(three_nodes.nodes[2])
    assert len(last) < FILES and set(last) <= set(shard_checksums(three_nodes.nodes[0]))
