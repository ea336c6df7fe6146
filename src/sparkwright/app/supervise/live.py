"""The deployment at this moment, for whoever looks."""

from sparkwright.app.supervise.senses import Senses
from sparkwright.domain.live import Live, LiveNode
from sparkwright.supervision.state import State


def view(senses: Senses, state: State) -> Live:
    site, seen = senses.site, senses.site.seen
    return Live(
        at=site.now(),
        deployment=site.name,
        phase=state.phase,
        since=state.since,
        reason="; ".join(text for text in (state.reason, seen.doing) if text),
        refusing=state.refusing,
        why=seen.why if state.refusing else "",
        back_at=seen.back_at if state.refusing else 0.0,
        incident=state.incident,
        last_incident=seen.incidents[1],
        incidents=seen.incidents[0],
        relaunches=seen.relaunches,
        troubles=(*state.troubles, *state.refusals),
        ranks=tuple(rank for _, rank in sorted(seen.ranks.items())),
        nodes=tuple(_node(senses, node) for node in site.nodes),
        engine=seen.engine,
        canary=seen.canary,
        engine_address=site.url,
        simulated=site.simulated,
    )


def _node(senses: Senses, node: str) -> LiveNode:
    """One that was not looked at yet has no time."""
    at = senses.site.now() if senses.detectors.missed(node) else 0.0
    return senses.detectors.live_node(node) or LiveNode(node, at, reached=False)
