"""All nodes rebooted together: what the driver or the fabric holds on to on one is held by the others, too."""

from collections.abc import Sequence

from sparkwright.app.supervise.census import Census, census
from sparkwright.app.supervise.site import Site
from sparkwright.app.tasks import each
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.units import duration
from sparkwright.remote import repair as commands
from sparkwright.supervision.events import Rebooted, RebootFailed

# A GB10 is back within two minutes; one that checks its disks takes longer.
_WITHIN, _EVERY = 1200.0, 5.0


async def reboot(site: Site, before: Sequence[tuple[str, str]]) -> Rebooted | RebootFailed:
    """Those that still have the marker of before; the head itself at last, which ends this supervisor."""
    old = dict(before)
    unknown = [node for node in site.nodes if node not in old]
    if unknown:
        return RebootFailed(site.now(), f"{', '.join(unknown)}: whether it was rebooted could not be told afterwards")
    due = _still(await census(site), old)
    if refused := await _refused(site, due):
        return RebootFailed(site.now(), refused)
    await each(_order(site, node) for node in due if node != site.head)
    if site.head in due:
        await _order(site, site.head)
    return await _back(site, old)


def _still(found: Census, old: dict[str, str]) -> list[str]:
    return [node for node, marker in found.boots if old[node] == marker]


async def _refused(site: Site, nodes: Sequence[str]) -> str:
    """Why it cannot be done; asked of all before the first one goes."""
    asked = await each(site.world.hosts[node].run(commands.may()) for node in nodes)
    not_us = [node for node, done in zip(nodes, asked, strict=True) if not done.ok]
    return f"{', '.join(not_us)}: `sudo -n systemctl reboot` is not allowed there" if not_us else ""


async def _order(site: Site, node: str) -> None:
    site.say(f"rebooting {node}", warning=True)
    try:
        await site.world.hosts[node].run(commands.reboot())
    except Unreachable:
        return  # it went before it could answer


async def _back(site: Site, old: dict[str, str]) -> Rebooted | RebootFailed:
    deadline = site.world.clock.monotonic() + site.scaled(_WITHIN)
    while site.world.clock.monotonic() < deadline:
        await site.pause(_EVERY)
        found = await census(site)
        if not _still(found, old) and len(found.boots) == len(site.nodes):
            return Rebooted(site.now())
    late = [*_still(found, old), *found.unseen]
    return RebootFailed(site.now(), f"{', '.join(late)} not back within {duration(site.scaled(_WITHIN))}")
