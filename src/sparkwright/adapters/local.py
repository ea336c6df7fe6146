"""Nodes that are this machine (`ssh: local`): the same scripts without ssh."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from sparkwright.adapters import node_script, process
from sparkwright.adapters.audit import whoami
from sparkwright.adapters.node_host import NodeHost
from sparkwright.adapters.node_script import Script
from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import Unreachable


class LocalTransport:
    """name: of the node, for messages. environ: of the processes (None: this process's own); Node.env comes on top."""

    def __init__(self, name: str, environ: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._environ = environ

    async def open(self, script: Script) -> Process:
        argv, first = node_script.words(script)
        return await process.start(argv, first, self._environ)

    def lost(self, stderr: str, begun: bool) -> Unreachable:
        tail = stderr.strip().splitlines()[-1:] or ["no output"]
        return Unreachable(self._name, f"the local shell was ended before its command: {tail[0]}")

    async def renew(self) -> bool:
        return False

    @asynccontextmanager
    async def tunnel(self, address: str, port: int) -> AsyncIterator[str]:
        yield url(address, port)

    async def close(self, persist: bool) -> None:
        return None


def url(address: str, port: int) -> str:
    """http URL of an address, IPv6 in brackets."""
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def local_host(node: Node, who: str | None = None, environ: Mapping[str, str] | None = None) -> NodeHost:
    """The Host of a node that is this machine."""
    return NodeHost(node, LocalTransport(node.name, environ), who or whoami())
