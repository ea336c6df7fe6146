"""The way to each node of a cluster."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from sparkwright.adapters import node_script, process
from sparkwright.adapters.machine import whoami
from sparkwright.adapters.node_host import NodeHost
from sparkwright.adapters.node_script import NodeScript
from sparkwright.adapters.ssh import SshSettings, ssh_host
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import Unreachable, UsageError


class LocalTransport:
    """name: of the node, for messages. environ: of the processes (None: this process's own); Node.env comes on top."""

    def __init__(self, name: str, environ: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._environ = environ

    async def open(self, script: NodeScript) -> Process:
        argv, first = node_script.argv_of(script)
        return await process.start(argv, first, self._environ)

    def lost(self, stderr: str, begun: bool) -> Unreachable:
        tail = stderr.strip().splitlines()[-1:] or ["no output"]
        return Unreachable(self._name, f"the local shell was ended before its command: {tail[0]}")

    async def renew(self, stderr: str) -> bool:
        return False

    @asynccontextmanager
    async def tunnel(self, address: str, port: int) -> AsyncIterator[str]:
        yield http_url(address, port)

    async def address(self) -> str:
        return ""

    async def close(self, persist: bool) -> None:
        return None


def http_url(address: str, port: int) -> str:
    """http URL of an address, IPv6 in brackets."""
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def local_host(node: Node, who: str | None = None, environ: Mapping[str, str] | None = None) -> NodeHost:
    """The Host of a node that is this machine."""
    return NodeHost(node, LocalTransport(node.name, environ), who or whoami())


class ClusterHosts:
    """Implements ports.Hosts. who: `user@host` for the nodes' audit logs (default: this process's user).

    settings.environ is also the environment of commands on local nodes, before Node.env.
    """

    def __init__(self, cluster: Cluster, settings: SshSettings | None = None, who: str | None = None) -> None:
        self._cluster = cluster
        self._settings = settings or SshSettings()
        self._who = who or whoami()
        self._made: dict[str, NodeHost] = {}

    def __getitem__(self, node: str) -> NodeHost:
        """Raises UsageError for a node that the cluster does not have."""
        if node not in self._cluster.names:
            names = ", ".join(self._cluster.names)
            raise UsageError(f"{node} is no node of cluster {self._cluster.name}", f"its nodes are {names}")
        if node not in self._made:
            one, settings = self._cluster.node(node), self._settings
            made = local_host(one, self._who, settings.environ) if one.is_local else ssh_host(one, settings, self._who)
            self._made[node] = made
        return self._made[node]

    async def close(self, persist: bool = True) -> None:
        """persist: leave the shared ssh connections open for the next call (they end automatically after 60 s)."""
        for host in self._made.values():
            await host.close(persist)
        self._made.clear()
