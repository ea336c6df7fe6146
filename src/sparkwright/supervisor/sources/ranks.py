"""One rank, followed: its end within a second, and what its log says meanwhile."""

from sparkwright.app.ranks import End, runs
from sparkwright.app.watch import TAIL, how
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.sources.lines import lines

# A rank that leaves in order while it serves has lost a peer: what the peer's end says is the fault.
_FIRST = 0.5


async def follow(bus: EventBus, rank: int) -> None:
    """Until the rank ends. A node that cannot be reached tells nothing: its rank has not ended for that."""
    context = bus.context
    async for line in lines(context, lambda: context.following(rank)):
        if isinstance(line, str):
            context.seen.line(rank, line)
            bus.read(context.label(rank), line)
        elif isinstance(line, End) and not await runs(context.services, context.name, rank, context.nodes[rank]):
            if line.how.startswith("exited 0 "):
                await context.services.clock.sleep(_FIRST)
            ended(bus, rank, line.how)
            return


def ended(bus: EventBus, rank: int, told: str) -> None:
    """told: as End.how."""
    context = bus.context
    last = tuple(f"{context.label(rank)}: {line}" for line in context.seen.lines.get(rank, ()))[-TAIL:]
    what = f"{context.label(rank)} {how(told)}"
    bus.tell(Fault(context.now(), "rank-exited", what, Recovery.RELAUNCH, last))
