"""The nodes are another `up`'s: its request is renewed for as long as it is at work."""

from sparkwright.app.supervise.live import view
from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.site import Site
from sparkwright.app.tasks import each
from sparkwright.domain.errors import NodeError
from sparkwright.domain.live import Ask
from sparkwright.domain.units import duration
from sparkwright.remote import lease
from sparkwright.supervision.events import Returned
from sparkwright.supervision.state import State

# Six renewals missed, as with a lease.
SILENT = 60.0
_LOOK_AGAIN = 0.5


async def swap(senses: Senses, state: State) -> Returned:
    """Shown first: only then does the `up` stop a rank."""
    site = senses.site
    while True:
        request = site.keep.journal.request()
        if request is None:
            return Returned(site.now(), "the `up` that was replacing it has withdrawn")
        if request.ask is not Ask.REPLACE:
            site.keep.journal.answered()
            return Returned(site.now(), request.why, request.ask is not Ask.LEAVE)
        if request.age > site.scaled(SILENT):
            return await _abandoned(site, request.by, request.nonce)
        if request.nonce != site.seen.request:
            site.seen.request = request.nonce
            site.keep.journal.show(view(senses, state))
        await site.world.clock.sleep(_LOOK_AGAIN)


async def _abandoned(site: Site, by: str, nonce: str) -> Returned:
    """A process that was killed gives back no lease."""

    async def free(node: str) -> None:
        try:
            await site.world.hosts[node].run(lease.release(nonce))
        except NodeError as error:
            site.say(f"its lease may be left: {error.message}", warning=True)

    await each(free(node) for node in site.nodes)
    site.keep.journal.answered()
    silent = duration(site.scaled(SILENT))
    return Returned(site.now(), f"the `up` of {by} that was replacing it sent no renewal for {silent}")
