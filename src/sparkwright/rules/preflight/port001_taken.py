"""A port that a rank must listen on is taken.

Detects: a listening socket on the rank's node with the same port, on the same address or on a wildcard
  (0.0.0.0 for IPv4, :: for both). Not: the ranks of the same deployment that run now, for they are replaced.
Why: the engine ends minutes later with `Address already in use`, or another server answers the health check.
Evidence: address, port and process as `ss` tells them; another user's process has no name there.
Remedy: stop the holder, or take another port.
References: https://github.com/FHNW-Security-Lab-Experimental/glm-5.2-gb10 (a model router on 8000 answered
  the poll of /health with a false 200).
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Listener, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.plan import RankSpec
from sparkwright.rules.reading import known, running
from sparkwright.rules.rule import Context

CODE = "PORT001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a port that a rank must listen on is taken"

_ANY = ("::", "*")
_ANY_IPV4 = "0.0.0.0"


def check(context: Context) -> Iterator[Finding]:
    for spec in context.specs:
        facts = context.facts.get(spec.node)
        if facts is None:
            continue
        for address, port in spec.listens:
            holder = _holder(facts, address, port)
            if holder and not _is_replaced(context, facts, port):
                yield _finding(context, spec, f"{address}:{port}", holder)


def overlap(wanted: str, taken: str) -> bool:
    """Whether two listening addresses meet. `::` takes IPv4 too (bindv6only is off unless somebody sets it)."""
    wanted, taken = wanted.removeprefix("::ffff:"), taken.removeprefix("::ffff:")
    if wanted == taken or wanted in _ANY or taken in _ANY:
        return True
    return _ANY_IPV4 in (wanted, taken) and ":" not in wanted + taken


def _holder(facts: NodeFacts, address: str, port: int) -> Listener | None:
    listeners = known(facts.listeners) or ()
    found = [entry for entry in listeners if entry.port == port and overlap(address, entry.address)]
    return next((entry for entry in found if entry.process), found[0] if found else None)


def _is_replaced(context: Context, facts: NodeFacts, port: int) -> bool:
    """Held by our running rank: its API port is known, and what else a head listens on has the same recipe."""
    own = [rank for rank in running(facts) or () if rank.deployment == context.deployment]
    api = context.recipe.serving.port if context.recipe else 0
    return any(rank.rank == 0 and (rank.port == port or port != api) for rank in own)


def _finding(context: Context, spec: RankSpec, wanted: str, holder: Listener) -> Finding:
    facts = context.facts[spec.node]
    other = next((rank for rank in running(facts) or () if rank.port == holder.port), None)
    near = sorted({rank.deployment for rank in running(facts) or () if rank.deployment != context.deployment})
    who = holder.process or "a process of another user"
    if near and not other:
        who += f"; deployment {', '.join(near)} runs here and may be its holder"
    if other:
        who = f"{other.deployment}, a deployment of sparkwright"
    return Finding(
        CODE,
        SEVERITY,
        f"rank {spec.rank} on {spec.node}",
        f"port {holder.port} is taken by {who}",
        f"ss: {holder.address}:{holder.port} {holder.process or '(no name told)'}; wanted: {wanted}",
        "something listens there already, and two cannot",
        _remedy(context, spec, holder.port, other.deployment if other else ""),
    )


def _remedy(context: Context, spec: RankSpec, port: int, other: str) -> str:
    serving = context.recipe.serving if context.recipe else None
    stop = f"sparkwright down {other}" if other else f"stop it (on {spec.node}: sudo ss -ltnp 'sport = :{port}')"
    names = {serving.port: "serving.port", serving.master_port: "serving.master_port"} if serving else {}
    return f"{stop}, or set another {names[port]}" if port in names else stop
