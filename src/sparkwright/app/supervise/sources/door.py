"""The front door's files, looked at now and then: a certificate expires while it serves, a keys file gets damaged."""

from sparkwright.app.door import findings
from sparkwright.app.supervise.senses import Senses
from sparkwright.domain.errors import NodeError
from sparkwright.domain.service import Where
from sparkwright.rules.door_catalog import KEYS, PAIR
from sparkwright.supervision.events import Cleared, Fault
from sparkwright.supervision.state import Recovery

_EVERY = 3600.0
_WATCHED = (PAIR, KEYS)


async def watch(senses: Senses) -> None:
    """What `up` told once goes on ageing. Nothing is stopped by it, and it is over as soon as it is mended."""
    while True:
        await look(senses)
        await senses.site.pause(_EVERY)


async def look(senses: Senses) -> None:
    site = senses.site
    state = site.world.cluster.node(site.head).paths.state
    where = Where(site.head, f"{state}/supervision/{site.name}", state, "", "")
    try:
        found = {one.code: one for one in await findings(site.world, site.outline, where)}
    except NodeError as error:
        site.say(f"the front door's files cannot be looked at: {error.message}", warning=True)
        return
    for code in _WATCHED:
        if one := found.get(code):
            what = f"front door: {one.title} ({code}; {one.evidence}); {one.remedy}"
            senses.tell(Fault(site.now(), code, what, Recovery.NONE))
        else:
            senses.tell(Cleared(site.now(), code))
