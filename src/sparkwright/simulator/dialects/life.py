"""The life of a dialect's ranks: they meet, load, serve, and end, each step in the engine's words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sparkwright.simulator.core import POLL_S, Core, Link, Trouble
from sparkwright.simulator.dialects.site import Site
from sparkwright.simulator.dialects.words import Words
from sparkwright.simulator.link import PeerLost, Worker
from sparkwright.simulator.rank import Rank, StartFailed, signalled
from sparkwright.simulator.scheduler import Engine
from sparkwright.simulator.web import Web, bind, web
from sparkwright.simulator.worker import obey


@dataclass(frozen=True, slots=True)
class Head:
    """Rank 0. meet: returns when all ranks are on the link, or raises OSError or StartFailed."""

    rank: Rank
    words: Words
    link: Link
    meet: Callable[[], Awaitable[None]]
    engine: str
    """Name and version."""

    async def run(self) -> int:
        """The exit code: 0 after a signal, 1 when the start fails, the engine's own after a lost rank."""
        rank, words = self.rank, self.words
        words.greet(rank)
        try:
            sock = bind(rank.args.host, rank.args.port)
        except OSError as error:
            words.failed(rank, f"OSError: [Errno {error.errno}] {error.strerror}")
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
        rank, words = self.rank, self.words
        try:
            await self._meet()
            for step, phase in ((words.load, "load"), (words.fit, "kv"), (words.capture, "graphs")):
                await step(rank)
                await self.link.barrier(phase)
            await rank.enter("serve")
        except StartFailed as failure:
            words.failed(rank, str(failure))
            return 1
        except PeerLost:
            return await words.lost(rank)
        return None

    async def _meet(self) -> None:
        rank, words = self.rank, self.words
        await rank.passing(12.0)
        words.join(rank)
        await rank.enter("join")
        try:
            await self.meet()
        except OSError as error:
            raise StartFailed("", {"ERROR": f"OSError: [Errno {error.errno}] {error.strerror}"}) from None
        free = rank.settings.free_gib
        words.met(rank, await self.link.barrier("comm", free=free))

    async def _serve(self, sock: socket.socket, stop: asyncio.Future[None]) -> int:
        lost: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def ending(_: Engine) -> None:
            if not lost.done():
                lost.set_result(await self.words.lost(self.rank))

        core = Core(self.rank, self.link, Trouble(lambda: None, ending))
        site = Site(core, self.engine, self.words.metrics, self.words.labels)
        server = web(site.app(self.words.routes(site), self.words.guarded), self.rank.args, self.rank.voices.api)
        work = [server.serve(sockets=[sock]), core.engine.run(), core.watch(), self._ready(server, site)]
        tasks = [asyncio.ensure_future(w) for w in (*work, self._notice(core, ending))]
        ends: set[asyncio.Future[Any]] = {tasks[0], lost, stop}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        tasks[-1].cancel()
        self.words.stopping(self.rank)
        core.abort_all()
        await self.link.bye()
        server.should_exit = True
        await tasks[0]
        for task in tasks:
            task.cancel()
        return lost.result() if lost.done() else 0

    async def _ready(self, server: Web, site: Site) -> None:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        self.words.listening(self.rank)
        await self.rank.passing(2.0)
        self.words.ready(self.rank)
        site.up = True

    async def _notice(self, core: Core, ending: Callable[[Engine], Awaitable[None]]) -> None:
        while self.words.notices:
            await asyncio.sleep(POLL_S)
            if self.link.gone():
                await ending(core.engine)
                return


async def run_worker(rank: Rank, words: Words, host: str, port: int) -> int:
    """The exit code: 0 after a signal, 1 when the start fails, the engine's own when the head is gone."""
    words.greet(rank)
    stop = signalled(rank)
    life = asyncio.ensure_future(_worker(rank, words, host, port))
    ends: set[asyncio.Future[Any]] = {life, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        return life.result()
    life.cancel()
    words.stopping(rank)
    return 0


async def _worker(rank: Rank, words: Words, host: str, port: int) -> int:
    link = Worker(rank.number)
    try:
        await rank.passing(12.0)
        words.join(rank)
        await rank.enter("join")
        await link.join(host, port)
        words.met(rank, [await link.barrier("comm", free=rank.settings.free_gib)])
        for step, phase in ((words.load, "load"), (words.fit, "kv"), (words.capture, "graphs")):
            await step(rank)
            await link.barrier(phase)
        await rank.enter("serve")
        async with words.beside(rank):
            await obey(rank, link)
    except StartFailed as failure:
        words.failed(rank, str(failure))
        return 1
    except PeerLost as gone:
        return 0 if gone.said_bye else await words.lost(rank)
    finally:
        link.close()
    return 0
