"""Rank 0: binds its port, starts the engine over all ranks, then serves (service.py)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from typing import Any

from sparkwright.simulator import boot, phases
from sparkwright.simulator.ledger import busy_device
from sparkwright.simulator.link import Head, PeerLost, patient
from sparkwright.simulator.log import recorded
from sparkwright.simulator.rank import Rank, StartFailed, signalled
from sparkwright.simulator.ray_ranks import RayRanks
from sparkwright.simulator.service import Service
from sparkwright.simulator.web import bind

NCCL_LOST = (
    "RuntimeError: NCCL error: remote process exited or there was a network error, NCCL version 2.28.9\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
)


async def run_head(rank: Rank) -> int:
    """The exit code: 0 after a signal and after a lost rank, 1 when the start fails."""
    boot.greet(rank)
    try:
        sock = bind(rank.args.host, rank.args.port)
    except OSError as error:
        rank.voices.api.bare(f"Traceback (most recent call last):\nOSError: [Errno {error.errno}] {error.strerror}")
        return 1
    ray = rank.args.distributed_executor_backend == "ray" and rank.limits.world > 1
    link = RayRanks(rank) if ray else Head(rank.nodes)
    stop = signalled(rank)
    starting = asyncio.ensure_future(_guarded_start(rank, link))
    ends: set[asyncio.Future[Any]] = {starting, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done() or not starting.result():
        starting.cancel()
        sock.close()
        await link.bye()
        return 0 if stop.done() else 1
    return await Service(rank, link, stop).run(sock)


async def _guarded_start(rank: Rank, link: Head | RayRanks) -> bool:
    try:
        await _start(rank, link)
        return True
    except StartFailed as failure:
        rank.print_failure(failure)
    except PeerLost:
        recorded("peer-lost", rank.voices, {"HOST": socket.gethostname()})
        rank.print_failure(StartFailed("core-failed", {"ERROR": NCCL_LOST}))
    return False


async def _start(rank: Rank, link: Head | RayRanks) -> None:
    await rank.passing(4.0)
    boot.configure(rank)
    await rank.passing(12.0)
    boot.announce(rank)
    await rank.enter("join")
    await _meet(rank, link)
    boot.connected(rank)
    busy = busy_device(rank.ledger, rank.limits, rank.settings.free_gib)
    if busy:
        raise StartFailed("core-failed", {"ERROR": busy})
    began = time.monotonic()

    async def barrier(phase: str) -> None:
        """A slow rank is waited for, with a line every minute; a lost one ends the start."""
        work = asyncio.ensure_future(link.barrier(phase))
        await patient(work, rank.settings.shm_warn_s, lambda: rank.voices.core.line("shm_broadcast.py:681"))

    await phases.load(rank)
    await barrier("load")
    began = time.monotonic()
    await phases.compiled(rank)
    await phases.sized(rank, barrier)
    await phases.captured(rank)
    await barrier("graphs")
    await rank.enter("serve")
    scale = rank.settings.boot_scale
    boot.initialized(rank, (time.monotonic() - began) / scale if scale else rank.speed.compile_s)


async def _meet(rank: Rank, link: Head | RayRanks) -> None:
    """All ranks on the line. Waits for ever and prints nothing (captures m3, m4)."""
    try:
        await link.listen(rank.args.master_addr, rank.args.master_port)
    except OSError as error:
        number = error.errno or 0
        text = (
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
            f"port: {rank.args.master_port}, useIpv6: false, code: -{number}, name: {errno.errorcode.get(number)}, "
            f"message: {os.strerror(number).lower()}"
        )
        raise StartFailed("core-failed", {"ERROR": text}) from None
    await link.all_joined()
    boot.joined(rank)
    if rank.faults.has("no_comm"):
        await asyncio.Event().wait()
    await link.barrier("comm")
