"""All nodes rebooted together: what the driver or the fabric holds on to on one is held by the others, too."""

from collections.abc import Sequence

from sparkwright.app.tasks import each
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.units import duration
from sparkwright.remote import repair as commands
from sparkwright.supervision.events import Rebooted, RebootFailed
from sparkwright.supervisor.census import Census, census
from sparkwright.supervisor.context import DeploymentContext

# A GB10 is back within two minutes; one that checks its disks takes longer.
_WITHIN, _EVERY = 1200.0, 5.0


async def reboot(context: DeploymentContext, before: Sequence[tuple[str, str]]) -> Rebooted | RebootFailed:
    """Those that still have the marker of before; the head itself at last, which ends this supervisor."""
    old = dict(before)
    unknown = [node for node in context.nodes if node not in old]
    if unknown:
        return RebootFailed(
            context.now(), f"{', '.join(unknown)}: whether it was rebooted could not be told afterwards"
        )
    due = _still(await census(context), old)
    if refused := await _refused(context, due):
        return RebootFailed(context.now(), refused)
    await each(_order(context, node) for node in due if node != context.head)
    if context.head in due:
        await _order(context, context.head)
    return await _back(context, old)


def _still(found: Census, old: dict[str, str]) -> list[str]:
    return [node for node, marker in found.boots if old[node] == marker]


async def _refused(context: DeploymentContext, nodes: Sequence[str]) -> str:
    """Why it cannot be done; asked of all before the first one goes."""
    asked = await each(context.services.hosts[node].run(commands.may()) for node in nodes)
    not_us = [node for node, done in zip(nodes, asked, strict=True) if not done.ok]
    return f"{', '.join(not_us)}: `sudo -n systemctl reboot` is not allowed there" if not_us else ""


async def _order(context: DeploymentContext, node: str) -> None:
    context.say(f"rebooting {node}", warning=True)
    try:
        await context.services.hosts[node].run(commands.reboot())
    except Unreachable:
        return  # it went before it could answer


async def _back(context: DeploymentContext, old: dict[str, str]) -> Rebooted | RebootFailed:
    deadline = context.services.clock.monotonic() + context.scaled(_WITHIN)
    while context.services.clock.monotonic() < deadline:
        await context.pause(_EVERY)
        found = await census(context)
        if not _still(found, old) and len(found.boots) == len(context.nodes):
            return Rebooted(context.now())
    late = [*_still(found, old), *found.unseen]
    return RebootFailed(context.now(), f"{', '.join(late)} not back within {duration(context.scaled(_WITHIN))}")
