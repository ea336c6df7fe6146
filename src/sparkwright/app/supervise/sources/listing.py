"""The ranks as the nodes list them, now and then: what a follower may have missed, and what `status` shows."""

from sparkwright.app.supervise.census import Census, census
from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.sources.ranks import ended
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.live import LiveRank

_EVERY = 30.0


async def look(senses: Senses) -> None:
    site = senses.site
    while True:
        found = await census(site)
        note(senses, found)
        for rank, node in enumerate(site.nodes):
            listed = found.ranks.get(rank)
            if node not in found.unseen and not (listed and listed.running):
                ended(senses, rank, _how(listed))
                return
        await site.pause(_EVERY)


def _how(listed: RankStatus | None) -> str:
    """As a follower tells it."""
    return f"exited {listed.exit_code} {str(listed.oom_killed).lower()}" if listed else "gone"


def note(senses: Senses, found: Census) -> None:
    """For who looks."""
    seen = senses.site.seen
    for rank, status in found.ranks.items():
        seen.ranks[rank] = LiveRank(rank, status.node, status.running, status.started)
    if 0 in found.ranks and found.ranks[0].bind:
        seen.bind = found.ranks[0].bind
