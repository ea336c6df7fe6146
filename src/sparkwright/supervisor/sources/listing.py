"""The ranks as the nodes list them, now and then: what a follower may have missed, and what `status` shows."""

from sparkwright.domain.facts import RankStatus
from sparkwright.domain.live import LiveRank
from sparkwright.domain.recipe import Runtime
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery
from sparkwright.supervisor.census import Census, census
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.sources.ranks import ended

_EVERY, _AGAIN, _LEAST = 30.0, 2.0, 1.0
_DOCKER = "docker:"


async def look(bus: EventBus) -> None:
    context = bus.context
    while True:
        found = await census(context)
        note(bus, found)
        for rank, node in enumerate(context.nodes):
            listed = found.ranks.get(rank)
            if node not in found.unseen and not (listed and listed.running):
                ended(bus, rank, _how(listed))
                return
        await context.pause(_EVERY)


async def dockers(bus: EventBus) -> None:
    """Where Docker is away it is asked until it is back: what waits for it goes on at once."""
    while True:
        docked = bus.context.desired.recipe.engine.runtime is Runtime.DOCKER
        stalled = docked and bus.serving and bus.detectors.stall.since > 0
        if waited_for(bus) or stalled:
            found = await census(bus.context)
            note(bus, found)
            lost(bus, found)
        await bus.context.services.clock.sleep(max(bus.context.scaled(_AGAIN), _LEAST))


def lost(bus: EventBus, found: Census) -> None:
    """A fault where no token comes, either: containers may live on without their daemon, and then nothing is lost."""
    at, away = bus.context.now(), "; ".join(found.dockerless.values())
    if away and bus.serving and bus.detectors.stall.since:
        what = f"{away}, and {bus.detectors.stall.seen(bus.detectors.life, at)}"
        bus.tell(Fault(at, "docker-away", what, Recovery.RELAUNCH))


def waited_for(bus: EventBus) -> list[str]:
    """Nodes on which Docker is away."""
    return [kind.removeprefix(_DOCKER) for kind in bus.standing if kind.startswith(_DOCKER)]


def _how(listed: RankStatus | None) -> str:
    """As a follower tells it."""
    if listed is None:
        return "gone"
    return f"exited {listed.code} {str(listed.oom_killed).lower()}"


def note(bus: EventBus, found: Census) -> None:
    """For who looks."""
    seen = bus.context.seen
    for rank, node in enumerate(bus.context.nodes):
        away = found.dockerless.get(node, "")
        bus.stands(f"{_DOCKER}{node}", away and f"{away}: whether rank {rank} runs there is not known")
    for rank, status in found.ranks.items():
        seen.ranks[rank] = LiveRank(rank, status.node, status.running, status.started)
    if 0 in found.ranks and found.ranks[0].bind:
        seen.bind = found.ranks[0].bind
