"""Holding the leases of some nodes while something changes there."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from sparkwright.app.services import Services
from sparkwright.app.tasks import finished
from sparkwright.domain.errors import Busy, CommandFailed, NodeError
from sparkwright.domain.units import duration
from sparkwright.remote import lease
from sparkwright.remote.lease import Of

RENEW_EVERY = 10.0
# Six renewals missed: the holder is gone, or cut off from the node.
STALE_AFTER = 60.0


@dataclass
class Leases:
    """The leases of a piece of work. lost: who has taken one over; then nothing may be changed any more."""

    nodes: list[str]
    lost: Busy | None = None
    of: Of = Of.RANKS


@asynccontextmanager
async def holding(
    services: Services, nodes: Sequence[str], why: str, seize: bool = False, of: Of = Of.RANKS
) -> AsyncIterator[Leases]:
    """Takes the lease of every node, renews them, gives them back. Raises Busy; nothing stays taken then.

    Nodes are taken in the order of their names, so that two who want the same ones cannot block each other half-way.
    When somebody else takes one over (--break-lease), the work inside is cancelled and Busy is raised.
    """
    held = Leases([], of=of)
    try:
        for node in sorted(nodes):
            held.nodes.append(node)  # before it is ours: an interrupt must not leave a lease that nobody knows of
            await finished(_take(services, node, why, seize, of))
        async with _renewing(services, held):
            yield held
    finally:
        await finished(_release(services, held))


async def _take(services: Services, node: str, why: str, seize: bool, of: Of) -> None:
    content = json.dumps(
        {"holder": services.who, "why": why, "since": int(services.clock.now()), "nonce": services.nonce}
    )
    done = await services.hosts[node].run((lease.seize if seize else lease.take)(content, services.nonce, of))
    if done.exit_code == lease.HELD:
        raise _busy(services, node, done.stdout)
    if done.exit_code == lease.ODD:
        hint = "ask that user; --break-lease takes its place"
        raise Busy(f"{node}: its lease is no lease of ours: {done.stderr.strip()[:200]}", hint)
    if not done.ok:
        raise CommandFailed(node, f"the lease could not be taken: {done.stderr.strip()[:200]}", "inspect /run/lock")


def _busy(services: Services, node: str, held: str) -> Busy:
    age, _, content = held.partition("\n")
    try:
        info = json.loads(content)
        who, why, since = str(info["holder"]), str(info["why"]), float(info["since"])
    except (ValueError, KeyError, TypeError):
        return Busy(f"{node}: its lease holds something unreadable: {content[:80]!r}", "use --break-lease")
    silent = float(age) if age.strip().isdigit() else 0.0
    text = f"{node}: {who} holds the lease for `{why}` since {duration(max(services.clock.now() - since, 0))}"
    if silent < STALE_AFTER:
        return Busy(f"{text}, renewed {duration(silent)} ago", f"wait, or ask {who}; --break-lease takes it over")
    stale = f"{text}, but has not renewed it for {duration(silent)} (every {RENEW_EVERY:.0f} s is usual): it looks dead"
    return Busy(stale, "if nothing of that call still runs, repeat yours with --break-lease")


@asynccontextmanager
async def _renewing(services: Services, held: Leases) -> AsyncIterator[None]:
    holder = asyncio.current_task()
    renewing = asyncio.create_task(_renew(services, held, holder))
    try:
        yield
    except asyncio.CancelledError:
        if held.lost and holder:
            holder.uncancel()
            raise held.lost from None
        raise
    finally:
        renewing.cancel()


async def _renew(services: Services, held: Leases, holder: "asyncio.Task[object] | None") -> None:
    while not held.lost:
        await services.clock.sleep(RENEW_EVERY)
        for node in held.nodes:
            # A lost connection is no reason to stop: the work itself will say so.
            with suppress(NodeError):
                done = await services.hosts[node].run(lease.renew(services.nonce, held.of))
                held.lost = _busy(services, node, done.stdout) if done.exit_code == lease.HELD else held.lost
    if holder:
        holder.cancel()


async def _release(services: Services, held: Leases) -> None:
    async def one(node: str) -> None:
        # A node that does not answer keeps its lease, which is stale after a minute.
        with suppress(NodeError, TimeoutError):
            async with asyncio.timeout(lease.TIMEOUT):
                await services.hosts[node].run(lease.release(services.nonce, held.of))

    await asyncio.gather(*(one(node) for node in held.nodes))
