"""The server's own counters and the nodes' memory before, during and after each level."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from sparkwright.app.bench.tools import Bench, Order
from sparkwright.domain.errors import NotReady
from sparkwright.domain.run import Scrape
from sparkwright.facts.engine_metrics import figures

_FIRST, _EVERY, _MEMORY_EVERY = 0.1, 1.0, 3.0  # seconds; a short level is looked at more often
_SECONDS = 5.0


@asynccontextmanager
async def watched(bench: Bench, order: Order) -> AsyncIterator[list[Scrape]]:
    """Fills the list while it is open; the first and the last are taken before and after, as far as it answers."""
    seen: list[Scrape] = []
    began = bench.clock.monotonic()

    async def take(memory: bool) -> None:
        nodes = await order.memory() if memory else {}
        counted = await _figures(bench, order)
        if counted or nodes:
            seen.append(Scrape(bench.clock.monotonic() - began, counted, nodes))

    async def go_on() -> None:
        last, pause = 0.0, _FIRST
        while True:
            await bench.clock.sleep(pause)
            pause = min(1.5 * pause, _EVERY)
            now = bench.clock.monotonic()
            due = now - last >= _MEMORY_EVERY
            last = now if due else last
            await take(due)

    await take(memory=True)
    began = bench.clock.monotonic()
    seen[:] = [Scrape(0.0, one.figures, one.memory) for one in seen]
    going = asyncio.ensure_future(go_on())
    try:
        yield seen
        await ended(going)
        await take(memory=True)
    finally:
        await ended(going)


async def ended(task: asyncio.Task[None]) -> None:
    """A cancellation of the caller is not taken for the task's own."""
    task.cancel()
    await asyncio.wait({task})
    with suppress(asyncio.CancelledError):
        task.result()


async def _figures(bench: Bench, order: Order) -> Mapping[str, float]:
    if not order.probed.metrics:
        return {}
    try:
        engine = order.target.engine
        reply = await bench.asker.get(engine.root + order.probed.metrics, engine.key, _SECONDS)
    except NotReady:
        return {}
    return figures(reply.body, order.probed.names) if reply.status == 200 else {}
