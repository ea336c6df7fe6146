"""Leases for changing nodes, renewed while held; and the supervisor, removed or paused when a person takes over."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime

from sparkwright.app.services import Services, finish_all, finished, together
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Busy, CommandFailed, NodeError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.units import duration
from sparkwright.domain.values import dataclass
from sparkwright.remote import lease, service
from sparkwright.remote.lease import Of

RENEW_EVERY = 10.0
# Six renewals missed: the holder is gone, or cut off from the node.
STALE_AFTER = 60.0
# Two renewals missed by a process of this machine that has ended: what it had sent to a node is over there by then.
_SETTLES = 20.0
# What a holder that died has half made heals on the nodes themselves, and what it had made is recorded there.
_HEALING = ("init", "init --undo")


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
    mine = {"holder": services.who, "why": why, "since": int(services.clock.now()), "nonce": services.nonce}
    if services.callers and (mark := services.callers.own_mark()):
        mine["process"] = mark
    done = await services.run(
        node, (lease.seize_lease if seize else lease.take_lease)(json.dumps(mine), services.nonce, of)
    )
    held = _held(services, done.stdout) if done.exit_code == lease.HELD else None
    if held and await _is_gone(services, node, held, of):
        done = await services.run(node, lease.seize_lease(json.dumps(mine), services.nonce, of))
    if done.exit_code == lease.HELD:
        raise _busy(services, node, done.stdout)
    if done.exit_code == lease.ODD:
        hint = "ask that user; --break-lease takes its place"
        raise Busy(f"{node}: its lease is no lease of ours: {done.stderr.strip()[:200]}", hint)
    if not done.ok:
        raise CommandFailed(node, f"the lease could not be taken: {done.stderr.strip()[:200]}", "inspect /run/lock")


async def _is_gone(services: Services, node: str, held: "_Held", of: Of) -> bool:
    """True if the holder's lease may be taken over: what it left half made heals, or it was a process of this user on
    this machine that has ended; what that one had sent is waited for."""
    said = f"{node}: {held.who} held the lease for `{held.why}`"
    if held.why in _HEALING and held.silent >= STALE_AFTER:
        services.notice(f"{said} and is gone since {duration(held.silent)}: it is taken over")
        return True
    ours = held.who.split(" ")[0] == services.who.split(" ")[0]
    if not (ours and services.callers and services.callers.has_ended(held.process)):
        return False
    wait = max(_SETTLES - held.silent, 0.0)
    soon = f"once what it had begun is over, in {duration(wait)}" if wait else "now"
    services.notice(f"{said}, and that process of this machine has ended: it is taken over {soon}")
    await services.clock.sleep(wait)
    done = await services.run(node, lease.show_lease(of))
    return not done.stdout.strip() or held.process == getattr(_held(services, done.stdout), "process", "")


@dataclass(frozen=True, slots=True)
class _Held:
    """The holder of a lease and the reason; its age and the holder's silence, in seconds. process: its mark."""

    who: str
    why: str
    age: float
    silent: float
    process: str = ""


def _held(services: Services, text: str) -> _Held | None:
    """None for what is no lease of ours."""
    age, _, content = text.partition("\n")
    try:
        info = read_json(content)
        who, why, since = str(info["holder"]), str(info["why"]), float(info["since"])
    except (ValueError, KeyError, TypeError):
        return None
    silent = float(age) if age.strip().isdigit() else 0.0
    return _Held(who, why, max(services.clock.now() - since, 0), silent, str(info.get("process", "")))


def _busy(services: Services, node: str, text: str) -> Busy:
    if not (held := _held(services, text)):
        content = text.partition("\n")[2][:80]
        return Busy(f"{node}: its lease holds something unreadable: {content!r}", "use --break-lease")
    said, silent = f"{node}: {held.who} holds the lease for `{held.why}` since {duration(held.age)}", held.silent
    if silent < STALE_AFTER:
        return Busy(f"{said}, renewed {duration(silent)} ago", f"wait, or ask {held.who}; --break-lease takes it over")
    stale = f"{said}, but has not renewed it for {duration(silent)} (every {RENEW_EVERY:.0f} s is usual): it looks dead"
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
                done = await services.run(node, lease.renew_lease(services.nonce, held.of))
                held.lost = _busy(services, node, done.stdout) if done.exit_code == lease.HELD else held.lost
    if holder:
        holder.cancel()


async def _release(services: Services, held: Leases) -> None:
    async def one(node: str) -> None:
        # A node that does not answer keeps its lease, which is stale after a minute.
        with suppress(NodeError, TimeoutError):
            async with asyncio.timeout(lease.TIMEOUT):
                await services.run(node, lease.release(services.nonce, held.of))

    await asyncio.gather(*(one(node) for node in held.nodes))


_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_REMOVED = re.compile(
    rf"(?P<at>{_TIME}) (?P<who>[^\n]{{1,100}}?) disarm [^ \n]+: (?P<why>down|replaced by [^ \n]{{1,100}})\n"
    rf"now (?P<now>{_TIME})",
    re.ASCII,
)


def supervisor_tag(services: Services, deployment: str) -> str:
    """The mark of a supervisor's key on the workers: `sparkwright:CLUSTER/DEPLOYMENT`."""
    return f"sparkwright:{re.sub(r'[^A-Za-z0-9._-]', '-', services.cluster.name)}/{deployment}"


async def remove_supervisor(
    services: Services, nodes: Sequence[str], deployment: str, why: str = ""
) -> tuple[str, ...]:
    """Takes away all that there is of its supervision, also half of it. The nodes that had some. Raises NodeError.

    why: for the audit log.
    """

    async def one(name: str) -> str:
        state, tag = services.state_on(name), supervisor_tag(services, deployment)
        done = await run_or_raise(services, name, service.remove(state, deployment, tag, why))
        return name if "was" in done.stdout.split() else ""

    return tuple(filter(None, await finish_all(finished(one(name)) for name in nodes)))


@asynccontextmanager
async def taking_over(
    services: Services, nodes: Sequence[str], deployment: str, why: str, seize: bool
) -> AsyncIterator[Leases]:
    """Holds the leases as `holding` does; a supervisor of this deployment gives way, and resumes if that was in
    vain."""
    async with AsyncExitStack() as stack:
        try:
            held = await stack.enter_async_context(holding(services, nodes, why, seize))
        except Busy:
            watched = tuple(dict.fromkeys((*nodes, services.cluster.supervisor_node)))
            paused = await finished(pause_supervisor(services, watched, deployment)) if services.program else ()
            if not paused:
                raise
            stack.push_async_callback(_resume, services, paused, deployment)
            try:
                held = await stack.enter_async_context(holding(services, nodes, why, seize))
            except Busy:  # what it had sent to a node before it ended may take the lease there after it was freed
                await finished(pause_supervisor(services, watched, deployment))
                held = await stack.enter_async_context(holding(services, nodes, why, seize))
        yield held


async def pause_supervisor(services: Services, nodes: Sequence[str], deployment: str) -> tuple[str, ...]:
    """Ends the supervisor, and with it what it was about; its leases are free then. The nodes where one ran."""

    async def free(node: str, nonce: str) -> None:
        with suppress(NodeError):
            await services.run(node, lease.release(nonce))

    async def one(name: str) -> str:
        done = await services.run(name, service.pause_supervisor(services.state_on(name), deployment))
        words = done.stdout.split()
        if done.ok and "nonce" in words[:-1]:
            await together(free(node, words[-1]) for node in nodes)
        return name if done.ok and "was" in words else ""

    return tuple(filter(None, await finish_all(one(name) for name in nodes)))


async def _resume(services: Services, nodes: Sequence[str], deployment: str) -> None:
    """Resumes paused supervisors that still exist: `disarm` has removed them if something else was begun."""
    for name in nodes:
        with suppress(NodeError):
            await finished(run_or_raise(services, name, service.resume(services.state_on(name), deployment)))


async def taken_down(services: Services, node: str, deployment: str, within: float) -> str:
    """The person and time of a `down` that ended it in the last `within` seconds, from the node's audit log; '' without
    one."""
    why, who = await _removed(services, node, deployment, within)
    return who if why == "down" else ""


async def removed_text(services: Services, node: str, deployment: str, within: float) -> str:
    """Sentence on who took it down or replaced it in the last seconds, '' if the node's audit log has nothing."""
    why, who = await _removed(services, node, deployment, within)
    if not why:
        return ""
    return f"it was taken down by {who}" if why == "down" else f"it was {why}, by {who}"


async def _removed(services: Services, node: str, deployment: str, within: float) -> tuple[str, str]:
    with suppress(NodeError, ValueError):
        told = await services.run(node, service.taken_down(services.state_on(node), deployment))
        if found := _REMOVED.fullmatch(told.stdout.strip()):
            at, now = (datetime.fromisoformat(found[name]) for name in ("at", "now"))
            who = "".join(c for c in found["who"] if c.isprintable())
            if abs((now - at).total_seconds()) <= within:
                return found["why"], f"{who} at {at:%H:%M:%S} UTC"
    return "", ""


async def run_or_raise(services: Services, node: str, command: Command) -> Completed:
    """Raises CommandFailed."""
    done = await services.run(node, command)
    if not done.ok:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise CommandFailed(node, f"{command.changes}: exit {done.exit_code}: {said}")
    return done
