"""Child processes of this machine: their ends."""

from __future__ import annotations

import asyncio
import os
import signal

from sparkwright.adapters import process


async def test_a_pipe_that_nobody_reads_is_let_go() -> None:
    """Guards the end of a program whose input was closed with bytes left, while its own child holds the other end."""
    started = await process.start(["sh", "-c", "exec 3<&0; sleep 600 <&3 >&- 2>&- & echo $!"], b"x" * (1 << 20))
    assert started.stdin
    child = int(await process.read_chunk(started))
    try:
        started.stdin.close()
        assert started.stdin.transport.get_write_buffer_size()
        await process.end_process(started, 0.0)
        await asyncio.wait_for(started.stdin.wait_closed(), 60)
    finally:
        os.kill(child, signal.SIGKILL)
