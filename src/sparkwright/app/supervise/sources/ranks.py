"""One rank, followed: its end within a second, and what its log says meanwhile."""

from sparkwright.app.ranks import End, runs
from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.sources.lines import lines
from sparkwright.app.watch import TAIL, how
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

# A rank that leaves in order while it serves has lost a peer: what the peer's end says is the fault.
_FIRST = 0.5


async def follow(senses: Senses, rank: int) -> None:
    """Until the rank ends. A node that cannot be reached tells nothing: its rank has not ended for that."""
    site = senses.site
    async for line in lines(site, lambda: site.following(rank)):
        if isinstance(line, str):
            site.seen.line(rank, line)
            senses.read(site.label(rank), line)
        elif isinstance(line, End) and not await runs(site.world, site.name, rank, site.nodes[rank]):
            if line.how.startswith("exited 0 "):
                await site.world.clock.sleep(_FIRST)
            ended(senses, rank, line.how)
            return


def ended(senses: Senses, rank: int, told: str) -> None:
    """told: as End.how."""
    site = senses.site
    last = tuple(f"{site.label(rank)}: {line}" for line in site.seen.lines.get(rank, ()))[-TAIL:]
    what = f"{site.label(rank)} {how(told)}"
    senses.tell(Fault(site.now(), "rank-exited", what, Recovery.RELAUNCH, last))
