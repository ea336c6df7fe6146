"""A headless rank: does its part of the start, answers every step, and ends with its head."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from sparkwright.simulator import boot, phases
from sparkwright.simulator.activity import SPIN, Activity
from sparkwright.simulator.ledger import busy_device
from sparkwright.simulator.link import PeerLost, Worker
from sparkwright.simulator.rank import Hoard, Rank, StartFailed, signalled

GONE = "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"


async def run_worker(rank: Rank) -> int:
    """The exit code: 0 after a signal and after the head's end, 1 when the start fails."""
    stop = signalled(rank)
    life = asyncio.ensure_future(_life(rank))
    ends: set[asyncio.Future[Any]] = {life, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        return life.result()
    life.cancel()
    return 0


async def _life(rank: Rank) -> int:
    link = Worker(rank.number)
    try:
        await _start(rank, link)
        await follow_head(rank, link)
    except StartFailed as failure:
        rank.print_failure(failure)
        return 1
    except PeerLost:
        _head_is_gone(rank, link)
    finally:
        link.close()
    return 0


async def _start(rank: Rank, link: Worker) -> None:
    await rank.passing(4.0)
    boot.configure(rank)
    await rank.passing(12.0)
    boot.announce(rank)
    await rank.enter("join")
    await link.join(rank.args.master_addr, rank.args.master_port)
    if rank.faults.has("no_comm") or _unreachable(rank):
        await asyncio.Event().wait()
    await link.barrier("comm")
    boot.connected(rank)
    busy = busy_device(rank.ledger, rank.limits, rank.settings.free_gib)
    if busy:
        raise StartFailed("core-failed", {"ERROR": busy})
    await phases.load(rank)
    await link.barrier("load")
    await phases.compiled(rank)
    await phases.sized(rank, link.barrier)
    await phases.captured(rank)
    await link.barrier("graphs")
    await rank.enter("serve")


def _unreachable(rank: Rank) -> bool:
    """NCCL or Gloo configured for the loopback while the head is elsewhere: both sides hang (captures m4)."""
    return bool(rank.settings.wrong_interface) and not rank.args.master_addr.startswith(("127.", "localhost"))


async def follow_head(rank: Rank, link: Worker) -> None:
    """Every step of the head's, for ever; faults that count requests strike here. Raises PeerLost."""
    hoard, activity = Hoard(rank.faults), Activity(rank.number)
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


def _head_is_gone(rank: Rank, link: Worker) -> None:
    store = f"SocketImpl(fd=29, addr={link.local_address()}, remote={rank.args.master_addr}:{rank.args.master_port})"
    number = rank.number
    rank.voices.native("TCPStore.cpp:106", f"[c10d] recvValue failed on {store}: {GONE}", rank=number)
    text = (
        f'[PG ID 0 PG GUID 0 Rank {number}] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server '
        f"has shut down too early), with error: {GONE}"
    )
    rank.voices.native("ProcessGroupNCCL.cpp:1826", text, rank=number)
