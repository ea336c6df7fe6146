"""A supervisor's state of its deployment as text."""

from collections.abc import Iterator

from sparkwright.cli.columns import aligned, fold
from sparkwright.domain.live import Live, LiveCanary, LiveNode, Supervised
from sparkwright.domain.units import MIB, duration, gib
from sparkwright.gateway.decide import waits

_HOUR = 3600.0
_STILL = 8 * MIB  # bytes an hour that no one has to read about


def since_text(found: Supervised | None) -> str:
    """How long it has been in its state."""
    live = found.current if found else None
    return f" for {duration(max(0.0, found.now - live.since))}" if found and live else ""


def supervised_text(found: Supervised) -> list[str]:
    """Lines under a deployment's own; a supervisor that is gone is a problem there."""
    live = found.current
    return [*_live(found, live), f"  supervised on {found.node}{_how(found)}"] if live else []


def _how(found: Supervised) -> str:
    kept = f" by {found.unit}" if found.unit else ", not restarted after a reboot"
    return kept + (f", for {found.by}" if found.by else "")


def _live(found: Supervised, live: Live) -> Iterator[str]:
    said = (live.reason, *(sentence for _, sentence in live.troubles))
    if live.reason and live.reason not in said[1:]:  # said as a problem
        yield fold(f"  reason: {live.reason}", 10)
    if awaited := waits(live, found.now):
        yield fold(f"  {awaited}{_usual(live)}", 10)
    if live.refusing:
        why = "" if live.why in said else f": {live.why}"
        yield fold(f"  new requests are refused{why}{_back(found, live)}", 10)
    if live.quiet:
        yield fold(f"  {live.quiet}", 4)
    if memory := [row for node in live.nodes if (row := _memory(node))]:
        yield aligned(memory)
    yield from (fold(f"  {_blind(node)}", 4) for node in live.nodes if node.reached and node.blind)
    if live.canary:
        yield f"  {_canary(found, live.canary)}"
    if live.incidents or live.relaunches:
        yield f"  {_incidents(live)}"
    if live.restarts:
        yield fold(f"  {_restarts(found, live)}", 4)


def _restarts(found: Supervised, live: Live) -> str:
    rows = [f"{one.who} {one.count} (last {duration(max(found.now - one.last, 0.0))} ago)" for one in live.restarts]
    return f"restarts since up: {', '.join(rows)}"


def _back(found: Supervised, live: Live) -> str:
    left = live.back_at - found.now
    if not live.back_at:
        return ""
    return f"; back in about {duration(left)}" if left > 0 else f"; it should have been back {duration(-left)} ago"


def _usual(live: Live) -> str:
    return f"; a start usually takes {duration(live.usual)}" if live.usual else ""


def _memory(node: LiveNode) -> tuple[str, ...] | None:
    if not node.reached:
        return "memory", node.node, "cannot be asked now" if node.at else "not sampled yet"
    if node.available is None:
        return None
    return "memory", node.node, f"{gib(node.available)} available" + _trend(node)


def _blind(node: LiveNode) -> str:
    hint = "sudo usermod -aG systemd-journal USER there, before the next start"
    return f"kernel log of {node.node} is not watched for Xid and out-of-memory lines: {node.blind}; {hint}"


def _trend(node: LiveNode) -> str:
    if node.per_hour is None or abs(node.per_hour) < _STILL:
        return ""
    way = "less" if node.per_hour < 0 else "more"
    left = "" if node.time_left is None else f"; at its floor in {duration(node.time_left)}"
    return f", {gib(abs(node.per_hour))} {way} each hour{left}"


def _canary(found: Supervised, canary: LiveCanary) -> str:
    ago = f"{duration(max(0.0, found.now - canary.at))} ago"
    if canary.seconds is None:
        return f"probe request: no token, asked {ago}: {canary.said}"
    kind = "simulated" if found.live and found.live.simulated else "real"
    return f"probe request: a {kind} token in {duration(canary.seconds)}, {ago}"


def _incidents(live: Live) -> str:
    relaunched = f", {live.relaunches} relaunch{'' if live.relaunches == 1 else 'es'}" if live.relaunches else ""
    if live.incident:
        return f"incident {live.incident} is open{relaunched}: sparkwright incidents show {live.incident}"
    last = f", the last: sparkwright incidents show {live.last_incident}" if live.last_incident else ""
    return f"incidents: {live.incidents}{relaunched}{last}"
