"""The end of the task that samples the server's figures during a level."""

import asyncio

import pytest

from sparkwright.app.bench.measure import end_task


async def test_who_is_stopped_while_a_task_ends_is_stopped() -> None:
    """Guards Ctrl-C while `end_task` waits: its caller is cancelled too, so that the run does not go on."""
    leaving = asyncio.Event()

    async def watching() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            leaving.set()
            await asyncio.sleep(0)

    task = asyncio.create_task(watching())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(end_task(task))
    await leaving.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait({task})
