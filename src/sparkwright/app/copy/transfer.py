"""Copies from node to node: how they are made, their progress, and why one failed."""

import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from secrets import token_hex

from sparkwright.app.cluster_state import require_all
from sparkwright.app.gather import gather, reached
from sparkwright.app.ranks import listed
from sparkwright.app.services import Services, together, understood
from sparkwright.domain.cluster import Transfer
from sparkwright.domain.command import Command
from sparkwright.domain.errors import CommandFailed, NodeError
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Progress
from sparkwright.domain.units import GIB
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.service import parse_peer
from sparkwright.planner.fabric import choose_fabrics
from sparkwright.remote import staging
from sparkwright.remote.programs.wire import CHANGED

# Exit codes: of the shell, of rsync and push.py, of ssh.
NO_PROGRAM, NO_SPACE, NO_SSH = 127, 11, 255
_KEPT = 6
# Next to an engine that serves, in bytes a second: 4 % of a link of 100 Gbit/s, which its ranks talk over, too.
_NEXT_TO_ENGINE = 500_000_000


@dataclass(frozen=True, slots=True)
class CopyStop:
    """A node of a copy, and the model's folder there, absolute."""

    node: str
    root: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy: its name for messages, its bytes (0: unknown), and its settings."""

    label: str
    size: int
    how: Transfer


class NoPython(Exception):
    """One of the nodes of a copy has no python3."""


async def manners(services: Services, nodes: Sequence[str]) -> Transfer:
    """The cluster file's copy settings; next to running ranks, copies yield to them and have a limit."""
    how = services.cluster.transfer
    busy = sorted({rank.node for rank in (await listed(services, nodes)).ranks if rank.state == "running"})
    if not busy:
        return how
    how = replace(how, limit=how.limit or _NEXT_TO_ENGINE, yields=True)
    rate = f"at most {how.limit / 1e6:,.0f} MB/s (transfer.limit)"
    services.notice(f"an engine serves on {', '.join(busy)}: weights are copied with what it leaves, {rate}")
    return how


async def copy_chain(services: Services, plan: Plan, what: Copied, stops: Sequence[CopyStop]) -> None:
    """Copies from the first node to all others; by rsync, with a notice, if a node has no python3. Raises
    CommandFailed."""
    try:
        await send_chain(services, plan, what, stops)
    except NoPython:
        names = " or ".join(stop.node for stop in stops)
        services.notice(f"{names} has no python3: weights are copied by rsync, over one connection")
        for stop in stops[1:]:
            await _rsync(services, plan, what, (stops[0], stop))
    for stop in stops[1:]:
        done = await services.run(stop.node, staging.settle(stop.root))
        if not done.ok:
            why = f"{stop.root}: the copy could not be completed: {done.stderr.strip()[:200]}"
            raise CommandFailed(stop.node, why)


async def send_chain(services: Services, plan: Plan, what: Copied, stops: Sequence[CopyStop]) -> None:
    """All that is whole on the first node; each other sends on what it receives while it comes.

    Raises CommandFailed, and NoPython where a node has none.
    """
    name = token_hex(8) if len(stops) > 2 else ""
    last = len(stops) - 2
    chains = [staging.Chain(name, follows=number > 0, leads=number < last) for number in range(last + 1)]
    await together(_push(services, plan, what, way) for way in zip(pairwise(stops), chains, strict=True))


async def _push(
    services: Services, plan: Plan, what: Copied, way: tuple[tuple[CopyStop, CopyStop], staging.Chain]
) -> None:
    (here, there), chain = way
    peer = await peer_of(services, plan, here.node, there.node)
    push = staging.push_tree(here.root, there.root, peer, what.how, chain)
    code, said = await follow(services, here.node, push, f"weights to {there.node}", what.size)
    if code == NO_PROGRAM:
        raise NoPython
    if code:
        raise await _failed(services, what, (here, there), (code, said))


async def _rsync(services: Services, plan: Plan, what: Copied, way: tuple[CopyStop, CopyStop]) -> None:
    here, there = way
    copy = staging.copy_tree(
        here.root, there.root, await peer_of(services, plan, here.node, there.node), what.how.limit
    )
    code, said = await follow(services, here.node, copy, f"weights to {there.node}", what.size)
    if code:
        raise await _failed(services, what, way, (code, said))
    await services.run(here.node, staging.drop_cache(here.root))


async def _failed(
    services: Services, what: Copied, way: tuple[CopyStop, CopyStop], end: tuple[int, str]
) -> CommandFailed:
    """The error of a copy; its files leave the page cache on both nodes."""
    for stop in way:
        with suppress(NodeError):
            await services.run(stop.node, staging.drop_cache(stop.root))
    return not_copied(way[0].node, way[1].node, what.label, *end)


def not_copied(source: str, node: str, what: str, code: int, said: str) -> CommandFailed:
    """The error of a copy that ended with this exit code and these last lines."""
    hints = {
        NO_SSH: f"{source} must be able to log in to {node} over the fabric: load your key into an ssh agent here "
        f"(`ssh-add`), which is used for the copy only, or give {source} a key of its own (`ssh-copy-id` there)",
        NO_PROGRAM: f"install python3 or rsync on {source} and {node}",
        CHANGED: f"wait until nothing writes to it on {source}, and call `up` again",
        NO_SPACE: f"make room on {node} (`df -h`) and call `up` again: it goes on where it stopped",
    }
    hint = hints.get(code, "call `up` again: weights go on where they stopped")
    return CommandFailed(node, f"{what} could not be copied there from {source} (exit {code}): {said}", hint)


# A program that fails in the middle of a state of its progress reports it on the same line.
_PERCENT = re.compile(
    r"\s*(?P<done>[\d,]+)\s+(?P<percent>\d{1,3})%\s+(?P<speed>\S+/s)\s+\d+:\d\d:\d\d"
    r"(?:\s+\(xfr#\d+, \w+-chk=\d+/\d+\))?(?:\s+(?P<stall>no data for \d+ s))?(?P<more>.*)"
)
_BYTES = re.compile(r"(?P<done>\d+) bytes(?: \([^)]*\) copied, \S+ s, \S+ \w+/s)?(?P<more>.*)")
_END, BETWEEN = "\x1eend ", " / "


async def follow(services: Services, node: str, command: Command, what: str, size: int) -> tuple[int, str]:
    """Runs a long command and reports its progress; its exit code and its last lines that are no progress.

    size: bytes in all, 0 when not known.
    """
    said = deque[str](maxlen=_KEPT)

    def look(line: str) -> None:
        if progress := _PERCENT.match(line) or _BYTES.match(line):
            services.sink.report(_progress(node, what, progress, size))
        if words := (progress["more"] if progress else line).strip():
            said.append(words[:300])

    return await watched(services, node, command, look), BETWEEN.join(said)


async def watched(services: Services, node: str, command: Command, look: Callable[[str], None]) -> int:
    """Runs a long command, shows `look` each of its lines as it comes; its exit code, 1 when it was cut off."""
    code = 1
    async for line in services.hosts[node].stream(replace(command, argv=_with_end(command.argv))):
        if line.startswith(_END):
            code = int(line.removeprefix(_END))
        else:
            look(line)
    return code


def _with_end(argv: Sequence[str]) -> tuple[str, ...]:
    """The same, with a line at its end that has the exit code."""
    told = 'printf "\\036end %s\\n" $?'
    if tuple(argv[:2]) == ("sh", "-c"):  # one script, which stays out of command lines
        return ("sh", "-c", f"(\n{argv[2]}\n)\n{told}", *argv[3:])
    return ("sh", "-c", f'"$@"; {told}', "sh", *argv)


def _progress(node: str, what: str, match: re.Match[str], size: int) -> Progress:
    total, done = (size / GIB if size else None), int(match["done"].replace(",", "")) / GIB
    found = match.groupdict()
    if "percent" not in found:
        return Progress("stage", node, done, total, "GiB", what)
    if not total or done > total:
        total = done * 100 / percent if (percent := int(found["percent"])) else None
    how = f": {found['stall']}" if found["stall"] else f" at {found['speed']}"
    return Progress("stage", node, done, total, "GiB", what + how)


async def peer_of(services: Services, plan: Plan | None, source: str, node: str) -> staging.Peer:
    """The way from source to node, as the node itself reports it over the connection that is already trusted.

    Raises CommandFailed when it does not answer, or when the two share no fabric.
    """
    reach = understood(node, "how to log in there", parse_peer(await services.run(node, staging.peer_login())))
    address, port = await _address(services, plan, source, node), reach.port
    local = services.cluster.node(source).is_local and services.cluster.node(node).is_local
    keys = staging.known_hosts(address, port, reach.keys)
    return staging.Peer(reach.user, address, port, keys, local, name=node, source=source)


async def _address(services: Services, plan: Plan | None, source: str, node: str) -> str:
    """The node's fabric address; without a plan, or of one that does without the source, the one that the two share."""
    if plan and source in plan.placement.nodes:
        return plan.placement.fabric[node].address
    pair = [services.cluster.node(name) for name in (node, source)]
    gathered = await gather(services.hosts, pair, services.clock)
    require_all(gathered)
    decision = choose_fabrics(pair, reached(gathered))[node]
    if decision.choice is None:
        why = "; ".join(finding.title for finding in decision.findings)
        raise CommandFailed(node, f"no fabric between {source} and {node}: {why}", "see `sparkwright check`")
    return decision.choice.address
