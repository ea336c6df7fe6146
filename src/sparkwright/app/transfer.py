"""Long commands on a node whose output shows how far they are, and how one node logs in to another for a copy."""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from sparkwright.app.cluster_state import require_all
from sparkwright.app.gather import gather, reached
from sparkwright.app.services import Services, understood
from sparkwright.domain.command import Command
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Progress
from sparkwright.domain.units import GIB
from sparkwright.facts.service import parse_peer
from sparkwright.planner.fabric import choose_fabrics
from sparkwright.remote import staging

# A program that fails in the middle of a state of its progress says so on the same line.
_PERCENT = re.compile(
    r"\s*(?P<done>[\d,]+)\s+(?P<percent>\d{1,3})%\s+(?P<speed>\S+/s)\s+\d+:\d\d:\d\d"
    r"(?:\s+\(xfr#\d+, \w+-chk=\d+/\d+\))?(?P<more>.*)"
)
_BYTES = re.compile(r"(?P<done>\d+) bytes(?: \([^)]*\) copied, \S+ s, \S+ \w+/s)?(?P<more>.*)")
_END = "\x1eend "
_KEPT = 6
SEPARATOR = " / "


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

    return await watched(services, node, command, look), SEPARATOR.join(said)


async def watched(services: Services, node: str, command: Command, look: Callable[[str], None]) -> int:
    """Runs a long command, shows `look` each of its lines as it comes; its exit code, 1 when it was cut off."""
    wrapped, code = ("sh", "-c", '"$@"; printf "\\036end %s\\n" $?', "sh", *command.argv), 1
    async for line in services.hosts[node].stream(replace(command, argv=wrapped)):
        if line.startswith(_END):
            code = int(line.removeprefix(_END))
        else:
            look(line)
    return code


def _progress(node: str, what: str, match: re.Match[str], size: int) -> Progress:
    total, done = (size / GIB if size else None), int(match["done"].replace(",", "")) / GIB
    found = match.groupdict()
    if "percent" not in found:
        return Progress("stage", node, done, total, "GiB", what)
    percent = int(found["percent"])
    if not total or done > total:
        total = done * 100 / percent if percent else None
    return Progress("stage", node, done, total, "GiB", f"{what} at {found['speed']}")


def other_image(node: str, name: str, found: str, wanted: str) -> CommandFailed:
    """The error of an image that came to a node as another than it was; expected: which one, and where that is."""
    hint = "the two Docker daemons store images differently (`docker info`: Storage Driver): make them alike"
    return CommandFailed(node, f"image {name} is {found} there and {wanted}", hint)


async def peer_of(services: Services, plan: Plan | None, source: str, node: str) -> staging.Peer:
    """The way from source to node, as the node itself reports it over the connection that is already trusted.

    Raises CommandFailed when it does not answer, or when the two share no fabric.
    """
    reach = understood(node, "how to log in there", parse_peer(await services.run(node, staging.peer())))
    address, port = await _address(services, plan, source, node), reach.port
    local = services.cluster.node(source).is_local and services.cluster.node(node).is_local
    return staging.Peer(reach.user, address, port, staging.known_hosts(address, port, reach.keys), local)


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
