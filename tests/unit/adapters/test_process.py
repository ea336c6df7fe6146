"""Child processes of this machine: their ends."""

from __future__ import annotations

import asyncio

from sparkwright.adapters import process


async def test_a_pipe_that_nobody_reads_is_let_go() -> None:
    """Guards the end of a program that never read its input, which was closed with bytes left: no broken pipe."""
    started = await process.start(["sleep", "600"], b"x" * (1 << 20))
    assert started.stdin
    started.stdin.close()
    assert started.stdin.transport.get_write_buffer_size()
    await process.end_process(started, 0.0)
    await asyncio.wait_for(started.stdin.wait_closed(), 60)
