"""The ranks as the nodes list them, now and then: what a follower may have missed, and what `status` shows."""

from sparkwright.app.supervise.census import Census, census
from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.sources.ranks import ended
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.live import LiveRank
from sparkwright.domain.recipe import Runtime
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

_EVERY, _AGAIN, _LEAST = 30.0, 2.0, 1.0
_DOCKER = "docker:"


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


async def dockers(senses: Senses) -> None:
    """Where Docker is away it is asked until it is back: what waits for it goes on at once."""
    while True:
        docked = senses.site.desired.recipe.engine.runtime is Runtime.DOCKER
        stalled = docked and senses.serving and senses.detectors.stall.since > 0
        if waited_for(senses) or stalled:
            found = await census(senses.site)
            note(senses, found)
            lost(senses, found)
        await senses.site.world.clock.sleep(max(senses.site.scaled(_AGAIN), _LEAST))


def lost(senses: Senses, found: Census) -> None:
    """A fault where no token comes, either: containers may live on without their daemon, and then nothing is lost."""
    at, away = senses.site.now(), "; ".join(found.dockerless.values())
    if away and senses.serving and senses.detectors.stall.since:
        what = f"{away}, and {senses.detectors.stall.seen(senses.detectors.life, at)}"
        senses.tell(Fault(at, "docker-away", what, Recovery.RELAUNCH))


def waited_for(senses: Senses) -> list[str]:
    """Nodes on which Docker is away."""
    return [kind.removeprefix(_DOCKER) for kind in senses.standing if kind.startswith(_DOCKER)]


def _how(listed: RankStatus | None) -> str:
    """As a follower tells it."""
    if listed is None:
        return "gone"
    return f"exited {listed.code} {str(listed.oom_killed).lower()}"


def note(senses: Senses, found: Census) -> None:
    """For who looks."""
    seen = senses.site.seen
    for rank, node in enumerate(senses.site.nodes):
        away = found.dockerless.get(node, "")
        senses.stands(f"{_DOCKER}{node}", away and f"{away}: whether rank {rank} runs there is not known")
    for rank, status in found.ranks.items():
        seen.ranks[rank] = LiveRank(rank, status.node, status.running, status.started)
    if 0 in found.ranks and found.ranks[0].bind:
        seen.bind = found.ranks[0].bind
