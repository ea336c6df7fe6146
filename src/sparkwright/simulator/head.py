"""The life of a rank: rank 0 starts the engine over all ranks, then serves (service.py); a headless one follows it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from typing import Any

from sparkwright.simulator import boot, phases
from sparkwright.simulator.ledger import busy_device
from sparkwright.simulator.link import HeadLink, PeerLost, WorkerLink, patient
from sparkwright.simulator.log import bind_port, recorded
from sparkwright.simulator.rank import SPIN, Hoard, RankActivity, SimulatedRank, StartFailed, signalled
from sparkwright.simulator.service import SimulatedService

NCCL_LOST = (
    "RuntimeError: NCCL error: remote process exited or there was a network error, NCCL version 2.28.9\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
)
GONE = "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"


async def run_head(rank: SimulatedRank, link: HeadLink) -> int:
    """The exit code: 0 after a signal and after a lost rank, 1 when the start fails."""
    boot.print_greeting(rank)
    try:
        sock = bind_port(rank.args.host, rank.args.port)
    except OSError as error:
        rank.voices.api.bare(f"Traceback (most recent call last):\nOSError: [Errno {error.errno}] {error.strerror}")
        return 1
    stop = signalled(rank)
    starting = asyncio.ensure_future(_guarded_start(rank, link))
    ends: set[asyncio.Future[Any]] = {starting, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done() or not starting.result():
        starting.cancel()
        sock.close()
        await link.bye()
        return 0 if stop.done() else 1
    return await SimulatedService(rank, link, stop).run(sock)


async def _guarded_start(rank: SimulatedRank, link: HeadLink) -> bool:
    try:
        await _start(rank, link)
        return True
    except StartFailed as failure:
        rank.print_failure(failure)
    except PeerLost:
        recorded("peer-lost", rank.voices, {"HOST": socket.gethostname()})
        rank.print_failure(StartFailed("core-failed", {"ERROR": NCCL_LOST}))
    return False


async def _start(rank: SimulatedRank, link: HeadLink) -> None:
    await _announce(rank)
    await _meet(rank, link)

    async def barrier(phase: str) -> None:
        """A slow rank is waited for, with a line every minute; a lost one ends the start."""
        work = asyncio.ensure_future(link.barrier(phase))
        await patient(work, rank.settings.shm_warn_s, lambda: rank.voices.core.line("shm_broadcast.py:681"))

    seconds, scale = await _prepare(rank, barrier), rank.settings.boot_scale
    boot.initialized(rank, seconds / scale if scale else rank.speed.compile_s)


async def _announce(rank: SimulatedRank) -> None:
    await rank.passing(4.0)
    boot.configure(rank)
    await rank.passing(12.0)
    boot.announce(rank)
    await rank.enter("join")


async def _prepare(rank: SimulatedRank, barrier: phases.Barrier) -> float:
    """Prepares the rank, from the rendezvous until it serves; returns the seconds since the weights were loaded."""
    boot.connected(rank)
    busy = busy_device(rank.ledger, rank.limits, rank.settings.free_gib)
    if busy:
        raise StartFailed("core-failed", {"ERROR": busy})
    await phases.load(rank)
    await barrier("load")
    began = time.monotonic()
    await phases.compiled(rank)
    await phases.size_cache(rank, barrier)
    await phases.captured(rank)
    await barrier("graphs")
    await rank.enter("serve")
    return time.monotonic() - began


async def _meet(rank: SimulatedRank, link: HeadLink) -> None:
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


async def run_worker(rank: SimulatedRank) -> int:
    """The exit code: 0 after a signal and after the head's end, 1 when the start fails."""
    stop = signalled(rank)
    life = asyncio.ensure_future(_life(rank))
    ends: set[asyncio.Future[Any]] = {life, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        return life.result()
    life.cancel()
    return 0


async def _life(rank: SimulatedRank) -> int:
    link = WorkerLink(rank.number)
    try:
        await _start_worker(rank, link)
        await follow_head(rank, link)
    except StartFailed as failure:
        rank.print_failure(failure)
        return 1
    except PeerLost:
        _head_is_gone(rank, link)
    finally:
        link.close()
    return 0


async def _start_worker(rank: SimulatedRank, link: WorkerLink) -> None:
    await _announce(rank)
    await link.join(rank.args.master_addr, rank.args.master_port)
    if rank.faults.has("no_comm") or _unreachable(rank):
        await asyncio.Event().wait()
    await link.barrier("comm")
    await _prepare(rank, link.barrier)


def _unreachable(rank: SimulatedRank) -> bool:
    """NCCL or Gloo configured for the loopback while the head is elsewhere: both sides hang (captures m4)."""
    return bool(rank.settings.wrong_interface) and not rank.args.master_addr.startswith(("127.", "localhost"))


async def follow_head(rank: SimulatedRank, link: WorkerLink) -> None:
    """Every step of the head's, for ever; faults that count requests strike here. Raises PeerLost."""
    hoard, activity = Hoard(rank.faults), RankActivity(rank.number)
    while True:
        frame = await link.next()
        activity.begin()
        answered = int(frame.get("answered", 0))
        rank.faults.refresh()
        due = rank.faults.due("die_after", answered)
        if due:
            os._exit(due.exit_code)
        if rank.faults.due("freeze_after", answered):
            activity.hang("")
            await asyncio.Event().wait()
        if rank.faults.due("spin_after", answered):
            activity.hang(SPIN)
            await asyncio.Event().wait()
        hoard.grow(answered)
        activity.end(float(frame.get("seconds", 0.0)))
        await link.answer()


def _head_is_gone(rank: SimulatedRank, link: WorkerLink) -> None:
    store = f"SocketImpl(fd=29, addr={link.local_address()}, remote={rank.args.master_addr}:{rank.args.master_port})"
    number = rank.number
    rank.voices.native("TCPStore.cpp:106", f"[c10d] recvValue failed on {store}: {GONE}", rank=number)
    text = (
        f'[PG ID 0 PG GUID 0 Rank {number}] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server '
        f"has shut down too early), with error: {GONE}"
    )
    rank.voices.native("ProcessGroupNCCL.cpp:1826", text, rank=number)
