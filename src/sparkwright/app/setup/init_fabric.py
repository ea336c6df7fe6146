"""The fabric of all nodes at once: applied, proven over the new path by every neighbour, and only then kept.

A node that hears nothing takes its settings back, whatever has become of this process, the cable or the other nodes.
"""

import re
from collections.abc import Mapping, Sequence

from sparkwright.app.check.fix import (
    FixOutcome,
    Result,
    WantedFix,
    begin_change,
    forget,
    run_commands,
    settle,
    value_of,
)
from sparkwright.app.lease import run_or_raise
from sparkwright.app.services import Services, finished, together
from sparkwright.domain.errors import CommandFailed, NodeError
from sparkwright.domain.finding import AppliedFix
from sparkwright.domain.progress import StepStarted
from sparkwright.domain.values import dataclass
from sparkwright.facts.changes import as_root
from sparkwright.planner.addressing import Layout
from sparkwright.remote import cabling

_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Ends:
    """folders: of each node's key for the others."""

    layout: Layout
    folders: Mapping[str, str]

    def ways(self, node: str, peer: str) -> list[tuple[str, str]]:
        """(interface of node, address of peer) for each link that both are on."""
        ports = [(port, far) for port in self.layout.of(node) for far in self.layout.across(port)]
        return [(port.name, str(far.address.ip)) for port, far in ports if far.node == peer]


async def set_fabric(services: Services, wanted: Sequence[WantedFix], ends: Ends) -> tuple[Result, ...]:
    """Configures the fabric on all nodes or on none."""
    if hand := [one for one in wanted if one.by_hand]:
        why = "; ".join(dict.fromkeys(f"{one.fix.node}: {one.by_hand}" for one in hand))
        return tuple(Result(one, FixOutcome.BY_HAND, why) for one in wanted)
    changes: list[AppliedFix] = []
    try:
        await _set(services, wanted, ends, changes)
    except NodeError as error:
        return await finished(_heal(services, wanted, changes, error.message))
    except BaseException:
        await finished(_heal(services, wanted, changes, "interrupted"))
        raise
    return tuple(Result(one, FixOutcome.DONE) for one in wanted)


async def _set(services: Services, wanted: Sequence[WantedFix], ends: Ends, changes: list[AppliedFix]) -> None:
    """changes: gets those that are recorded."""
    now, who = services.clock.now, services.who
    for one in wanted:
        before = await value_of(services, one.fix)
        changes.append(await begin_change(services, AppliedFix(one.code, one.fix, before, now(), who)))
    await together(_applied(services, one) for one in wanted)
    for one in wanted:
        await _proven(services, one, ends)
    for change in changes:
        await settle(services, change)


async def _applied(services: Services, one: WantedFix) -> None:
    services.sink.report(StepStarted(f"{one.fix.node} fabric", one.fix.says))
    if why := await run_commands(services, one, one.fix.do):
        raise CommandFailed(one.fix.node, why)


async def _proven(services: Services, one: WantedFix, ends: Ends) -> None:
    """Every neighbour reaches it by every port; then its rollback is stopped."""
    node, token = one.fix.node, ""
    for peer in ends.folders:
        if ways := ends.ways(peer, node):
            services.sink.report(
                StepStarted(f"{node} fabric", f"{peer} reaches it at {', '.join(w[1] for w in ways)}?")
            )
            proof = cabling.prove(ends.folders[peer], node, ways)
            done = await services.run(peer, proof)
            token = done.stdout.strip()
            if not (done.ok and _TOKEN.fullmatch(token)):
                why = (done.stderr.strip() or f"exit {done.exit_code}").splitlines()[-1]
                raise CommandFailed(peer, f"{node} is not reached over the new path: {why[:300]}")
    if not token:
        raise CommandFailed(node, "no other node is on its fabric ports")
    await run_or_raise(services, node, as_root(cabling.confirm(token), one.rights.password))


async def _heal(
    services: Services, wanted: Sequence[WantedFix], changes: Sequence[AppliedFix], why: str
) -> tuple[Result, ...]:
    """Takes it back on every node where that is known to have begun."""
    begun_on = {change.fix.node: change for change in changes}
    return tuple(await together(_healed(services, one, begun_on.get(one.fix.node), why) for one in wanted))


async def _healed(services: Services, one: WantedFix, change: AppliedFix | None, why: str) -> Result:
    if change is None:
        return Result(one, FixOutcome.FAILED, f"{why}; nothing is changed here")
    try:
        trouble = await run_commands(services, one, one.fix.undo)
        if not trouble:
            await forget(services, change)
            return Result(one, FixOutcome.FAILED, f"{why}; everything is as before here")
    except NodeError as error:
        trouble = error.message
    within = f"the node takes it back within {cabling.HEALS_AFTER} s of its own accord"
    return Result(one, FixOutcome.FAILED, f"{why}; {within} ({trouble})")
