"""The ranks' rendezvous and heartbeat: small frames over TCP, in place of c10d's store and NCCL.

The head listens on `--master-addr:--master-port`; workers connect and try again for ever; nothing reports a missing
one (captures m3, m4). Once all serve, every engine step is a frame that every worker must answer.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable
from typing import Any

HEADER = struct.Struct(">I")
RETRY_S = 0.2
Frame = dict[str, Any]


class PeerLost(Exception):
    """A rank's connection ended. `said_bye` when it was an orderly shutdown."""

    def __init__(self, rank: int, said_bye: bool = False) -> None:
        super().__init__(f"rank {rank} is gone")
        self.rank = rank
        self.said_bye = said_bye


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    """Raises EOFError or OSError when the other side is gone."""
    size = HEADER.unpack(await reader.readexactly(HEADER.size))[0]
    frame: Frame = json.loads(await reader.readexactly(size))
    return frame


def write_frame(writer: asyncio.StreamWriter, frame: Frame) -> None:
    body = json.dumps(frame).encode()
    writer.write(HEADER.pack(len(body)) + body)


class WorkerPeer:
    """A worker as the head sees it."""

    def __init__(self, rank: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.rank = rank
        self.reader = reader
        self.writer = writer

    async def ask(self, frame: Frame) -> Frame:
        try:
            write_frame(self.writer, frame)
            await self.writer.drain()
            return await read_frame(self.reader)
        except (EOFError, OSError):
            raise PeerLost(self.rank) from None


class HeadLink:
    """Rank 0's side. With one node it has no peers and every call returns at once.

    notices: it learns at once that a rank has died, also while nothing is asked.
    """

    notices = False

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.peers: dict[int, WorkerPeer] = {}
        self._joined = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        """Raises OSError when the address is not this machine's or the port is taken."""
        if self.nodes > 1:
            self._server = await asyncio.start_server(self._welcome, host, port)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = await read_frame(reader)
        except (EOFError, OSError):
            writer.close()
            return
        rank = int(hello["rank"])
        self.peers[rank] = WorkerPeer(rank, reader, writer)
        if len(self.peers) >= self.nodes - 1:
            self._joined.set()

    async def all_joined(self) -> None:
        if self.nodes > 1:
            await self._joined.wait()

    async def barrier(self, phase: str, **more: Any) -> list[Frame]:
        """All ranks have finished `phase`; what the workers report for it. Raises PeerLost."""
        return await self.ask({"op": "barrier", "phase": phase, **more})

    async def ask(self, frame: Frame) -> list[Frame]:
        """One frame to every worker, one answer from each. Raises PeerLost at the first that is gone."""
        tasks = [asyncio.ensure_future(p.ask(frame)) for p in self.peers.values()]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def gone(self) -> bool:
        """True if a worker's connection has ended, as far as an idle head can see."""
        return any(peer.reader.at_eof() for peer in self.peers.values())

    def lost(self) -> bool:
        """True if it has logged which rank has died: NCCL notices at once, its watchdog a minute later."""
        return False

    async def bye(self) -> None:
        for peer in self.peers.values():
            try:
                write_frame(peer.writer, {"op": "bye"})
                await peer.writer.drain()
            except OSError:
                pass
            peer.writer.close()
        if self._server is not None:
            self._server.close()


class WorkerLink:
    """Another rank's side: answers the head's frames in order."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def join(self, host: str, port: int) -> None:
        """Tries for ever, as vLLM's workers do, whatever the reason."""
        while True:
            try:
                self._streams = await asyncio.open_connection(host, port)
                break
            except OSError:
                await asyncio.sleep(RETRY_S)
        write_frame(self._streams[1], {"op": "hello", "rank": self.rank})
        await self._streams[1].drain()

    async def next(self) -> Frame:
        """Raises PeerLost when the head is gone, with `said_bye` when it announced that."""
        reader, _ = self._connected()
        try:
            frame = await read_frame(reader)
        except (EOFError, OSError):
            raise PeerLost(0) from None
        if frame["op"] == "bye":
            raise PeerLost(0, said_bye=True)
        return frame

    async def answer(self, **more: Any) -> None:
        _, writer = self._connected()
        try:
            write_frame(writer, {"op": "done", **more})
            await writer.drain()
        except OSError:
            raise PeerLost(0) from None

    async def barrier(self, phase: str, **more: Any) -> Frame:
        frame = await self.next()
        if frame.get("phase") != phase:
            raise PeerLost(0)
        await self.answer(**more)
        return frame

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()

    def local_address(self) -> str:
        return str(self._connected()[1].get_extra_info("sockname"))

    def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            raise PeerLost(0)
        return self._streams


async def patient(work: asyncio.Future[Any], every: float, remark: Callable[[], None]) -> None:
    """Waits for `work` as long as it takes and makes the remark after each `every` seconds of silence."""
    while True:
        done, _ = await asyncio.wait({work}, timeout=every)
        if done:
            work.result()
            return
        remark()
