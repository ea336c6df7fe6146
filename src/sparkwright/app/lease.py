"""Holding the leases of some nodes while something changes there."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from sparkwright.app.world import World
from sparkwright.commands import lease
from sparkwright.domain.errors import Busy, CommandFailed, NodeError
from sparkwright.domain.units import duration

RENEW_EVERY = 10.0
# Six renewals missed: the holder is gone, or cut off from the node.
STALE_AFTER = 60.0


@asynccontextmanager
async def holding(world: World, nodes: Sequence[str], why: str, seize: bool = False) -> AsyncIterator[None]:
    """Takes the lease of every node, renews them, gives them back. Raises Busy; nothing stays taken then.

    Nodes are taken in the order of their names, so that two who want the same ones cannot block each other half-way.
    """
    taken: list[str] = []
    try:
        for node in sorted(nodes):
            await _take(world, node, why, seize)
            taken.append(node)
        renewing = asyncio.create_task(_renew(world, taken))
        try:
            yield
        finally:
            renewing.cancel()
    finally:
        await asyncio.shield(_release(world, taken))


async def _take(world: World, node: str, why: str, seize: bool) -> None:
    content = json.dumps({"holder": world.who, "why": why, "since": int(world.clock.now()), "nonce": world.nonce})
    done = await world.hosts[node].run((lease.seize if seize else lease.take)(content, world.nonce))
    if done.exit_code == lease.HELD:
        raise _busy(world, node, done.stdout)
    if not done.ok:
        raise CommandFailed(node, f"the lease could not be taken: {done.stderr.strip()[:200]}", "look at /run/lock")


def _busy(world: World, node: str, held: str) -> Busy:
    age, _, content = held.partition("\n")
    try:
        info = json.loads(content)
        who, why, since = str(info["holder"]), str(info["why"]), float(info["since"])
    except (ValueError, KeyError, TypeError):
        return Busy(f"{node}: its lease holds something unreadable: {content[:80]!r}", "use --break-lease")
    silent = float(age) if age.strip().isdigit() else 0.0
    text = f"{node}: {who} holds the lease for `{why}` since {duration(max(world.clock.now() - since, 0))}"
    if silent < STALE_AFTER:
        return Busy(f"{text}, renewed {duration(silent)} ago", f"wait, or ask {who}; --break-lease takes it over")
    stale = f"{text}, but has not renewed it for {duration(silent)} (every {RENEW_EVERY:.0f} s is usual): it looks dead"
    return Busy(stale, "if nothing of that call still runs, repeat yours with --break-lease")


async def _renew(world: World, nodes: Sequence[str]) -> None:
    while True:
        await world.clock.sleep(RENEW_EVERY)
        for node in nodes:
            # A lost connection is no reason to stop: the work itself will say so.
            with suppress(NodeError):
                await world.hosts[node].run(lease.renew(world.nonce))


async def _release(world: World, nodes: Sequence[str]) -> None:
    async def one(node: str) -> None:
        with suppress(NodeError):
            await world.hosts[node].run(lease.release(world.nonce))

    await asyncio.gather(*(one(node) for node in nodes))
