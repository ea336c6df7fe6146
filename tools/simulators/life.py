"""The life of a dialect's ranks: they meet, load, serve, and end, each step in the engine's dialect."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from simulators.dialect import SimulatorDialect
from simulators.site import SimulatedSite
from sparkwright.simulator.head import follow_head
from sparkwright.simulator.link import HeadLink as Link
from sparkwright.simulator.link import PeerLost, WorkerLink
from sparkwright.simulator.log import Web, bind_port, web_server
from sparkwright.simulator.rank import SimulatedRank, StartFailed, signalled
from sparkwright.simulator.scheduler import SimulatedEngine
from sparkwright.simulator.service import POLL_S, Core, DialectTrouble


@dataclass(frozen=True, slots=True)
class Head:
    """Rank 0. meet: returns when all ranks are on the link, or raises OSError or StartFailed."""

    rank: SimulatedRank
    dialect: SimulatorDialect
    link: Link
    meet: Callable[[], Awaitable[None]]
    engine: str
    """Name and version."""

    async def run(self) -> int:
        """The exit code: 0 after a signal, 1 when the start fails, the engine's own after a lost rank."""
        rank, dialect = self.rank, self.dialect
        dialect.greet(rank)
        try:
            sock = bind_port(rank.args.host, rank.args.port)
        except OSError as error:
            dialect.failed(rank, f"OSError: [Errno {error.errno}] {error.strerror}")
            return 1
        stop = signalled(rank)
        starting = asyncio.ensure_future(self._start())
        ends: set[asyncio.Future[Any]] = {starting, stop}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            sock.close()
            await self.link.bye()
            return 0
        code = starting.result()
        return await self._serve(sock, stop) if code is None else code

    async def _start(self) -> int | None:
        """None when all ranks are ready to serve."""
        rank, dialect = self.rank, self.dialect
        try:
            await self._meet()
            for step, phase in ((dialect.load, "load"), (dialect.fit, "kv"), (dialect.capture, "graphs")):
                await step(rank)
                await self.link.barrier(phase)
            await rank.enter("serve")
        except StartFailed as failure:
            dialect.failed(rank, str(failure))
            return 1
        except PeerLost:
            return await dialect.lost(rank)
        return None

    async def _meet(self) -> None:
        rank, dialect = self.rank, self.dialect
        await rank.passing(12.0)
        dialect.join(rank)
        await rank.enter("join")
        try:
            await self.meet()
        except OSError as error:
            raise StartFailed("", {"ERROR": f"OSError: [Errno {error.errno}] {error.strerror}"}) from None
        free = rank.settings.free_gib
        dialect.met(rank, await self.link.barrier("comm", free=free))

    async def _serve(self, sock: socket.socket, stop: asyncio.Future[None]) -> int:
        lost: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def ending(_: SimulatedEngine) -> None:
            if not lost.done():
                lost.set_result(await self.dialect.lost(self.rank))

        core = Core(self.rank, self.link, DialectTrouble(lambda: None, ending))
        site = SimulatedSite(core, self.engine, self.dialect.metrics, self.dialect.labels, self.dialect.api)
        server = web_server(
            site.app(self.dialect.routes(site), self.dialect.guarded), self.rank.args, self.rank.voices.api
        )
        work = [server.serve(sockets=[sock]), core.engine.run(), core.watch(), self._ready(server, site)]
        tasks = [asyncio.ensure_future(w) for w in (*work, self._notice(core, ending))]
        ends: set[asyncio.Future[Any]] = {tasks[0], lost, stop}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        tasks[-1].cancel()
        if stop.done() and not lost.done():
            await asyncio.wait(
                {asyncio.ensure_future(self.dialect.drained(core)), lost}, return_when=asyncio.FIRST_COMPLETED
            )
        self.dialect.stopping(self.rank)
        core.abort_all()
        await self.link.bye()
        server.should_exit = True
        await tasks[0]
        for task in tasks:
            task.cancel()
        return lost.result() if lost.done() else self.dialect.exits()

    async def _ready(self, server: Web, site: SimulatedSite) -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        self.dialect.listening(self.rank)
        await self.rank.passing(2.0)
        self.dialect.ready(self.rank)
        site.up = True

    async def _notice(self, core: Core, ending: Callable[[SimulatedEngine], Awaitable[None]]) -> None:
        while self.dialect.notices:
            await asyncio.sleep(POLL_S)
            if self.link.gone():
                await ending(core.engine)
                return


async def run_worker(rank: SimulatedRank, dialect: SimulatorDialect, host: str, port: int) -> int:
    """The exit code: 0 after a signal, 1 when the start fails, the engine's own when the head is gone."""
    dialect.greet(rank)
    stop = signalled(rank)
    life = asyncio.ensure_future(_worker(rank, dialect, host, port))
    ends: set[asyncio.Future[Any]] = {life, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        return life.result()
    life.cancel()
    dialect.stopping(rank)
    return 0


async def _worker(rank: SimulatedRank, dialect: SimulatorDialect, host: str, port: int) -> int:
    link = WorkerLink(rank.number)
    try:
        await rank.passing(12.0)
        dialect.join(rank)
        await rank.enter("join")
        await link.join(host, port)
        dialect.met(rank, [await link.barrier("comm", free=rank.settings.free_gib)])
        for step, phase in ((dialect.load, "load"), (dialect.fit, "kv"), (dialect.capture, "graphs")):
            await step(rank)
            await link.barrier(phase)
        await rank.enter("serve")
        async with dialect.companions(rank):
            await follow_head(rank, link)
    except StartFailed as failure:
        dialect.failed(rank, str(failure))
        return 1
    except PeerLost as gone:
        return 0 if gone.said_bye else await dialect.lost(rank)
    finally:
        link.close()
    return 0
