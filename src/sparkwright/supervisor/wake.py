"""Nodes that are away and may be woken: a magic packet now and then, from a node that answers."""

from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import NodeError
from sparkwright.domain.incident import IncidentEvent
from sparkwright.remote.wake import send_magic_packet
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus

WOKEN = "woken"
_LOOK_EVERY = 10.0
# A node that was rebooted is back by then; one that is off needs two minutes, and a packet may be lost.
_AWAY, _AGAIN, _MOST = 60.0, 150.0, 5


async def wake_nodes(bus: EventBus) -> None:
    """Send packets until each is back; after five of them somebody's hand is needed."""
    context = bus.context
    waking = [node for node in context.services.cluster.nodes if node.wake and node.name in context.nodes]
    away: dict[str, float] = {}
    sent: dict[str, list[float]] = {}
    while waking:
        await context.pause(_LOOK_EVERY)
        for node in waking:
            at = context.now()
            if not bus.detectors.missed(node.name):
                away.pop(node.name, None)
                sent.pop(node.name, None)
                continue
            began, before = away.setdefault(node.name, at), sent.setdefault(node.name, [])
            due = not before or at - before[-1] >= context.scaled(_AGAIN)
            if at - began >= context.scaled(_AWAY) and due and len(before) < _MOST:
                before.append(at)
                await wake_node(context, node)


async def wake_node(context: DeploymentContext, node: Node) -> None:
    """One packet, from the first other node that can send one."""
    for sender in context.nodes:
        if sender == node.name:
            continue
        try:
            done = await context.services.run(sender, send_magic_packet(node.wake))
        except NodeError:
            continue
        if done.ok:
            said = f"{node.name} has been away for a minute or more: {sender} sent it a magic packet ({node.wake})"
            context.notice(f"{context.name}: {said}", warning=True)
            await context.store.note(context.name, IncidentEvent(context.now(), WOKEN, said), context.seen.incident)
            return
