"""The ranks' processes, looked at while the engine stands still: what is stopped is not busy."""

import asyncio

from sparkwright.app.supervise.senses import Senses
from sparkwright.app.tasks import together
from sparkwright.domain.errors import NodeError
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.sample import halts

_EVERY, _LEAST = 5.0, 1.0
# Of a node that hangs: its processes are not known then.
_LIMIT = 20.0


async def look_into(senses: Senses) -> None:
    """Costs nothing while tokens come."""
    site = senses.site
    while True:
        if senses.detectors.doubts(site.now()):
            await together(look(senses, rank) for rank in range(len(site.nodes)))
        await site.world.clock.sleep(max(site.scaled(_EVERY), _LEAST))


async def look(senses: Senses, rank: int) -> None:
    """What cannot be looked at is not stopped."""
    site = senses.site
    fact = halts(site.desired.recipe.engine.runtime, site.handle(rank))
    try:
        async with asyncio.timeout(_LIMIT):
            found = fact.read(await site.world.hosts[site.nodes[rank]].run(fact.command))
    except (NodeError, TimeoutError):
        return
    if not isinstance(found, Unknown):
        senses.found(senses.detectors.looked(site.label(rank), found, site.now()))
