"""`check --fix` and `check --undo`: small changes, each recorded on its node before it is made there."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from enum import StrEnum
from typing import Any

from sparkwright.app.check.checking import CheckReport, check_nodes
from sparkwright.app.lease import holding
from sparkwright.app.services import Services, by_node, finish_all, finished
from sparkwright.checks.attention import FORMER
from sparkwright.domain.command import Command, Secret
from sparkwright.domain.errors import CommandFailed, NodeError
from sparkwright.domain.finding import AppliedFix, Fix, Rights
from sparkwright.domain.progress import StepStarted
from sparkwright.domain.unknown import Unknown
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.changes import INIT, RIGHTS, as_root, record_path, record_text, recorded, rights_with
from sparkwright.facts.fact import Fact, first_line

_OTHERS = "somebody else changed it meanwhile: it is left as it is"


class FixOutcome(StrEnum):
    DONE = "done"
    SKIPPED = "skipped"
    BY_HAND = "by hand"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class WantedFix:
    """A change that could be made or taken back. rights: of the ssh user on its node. change: what is to be undone."""

    code: str
    fix: Fix
    rights: Rights
    change: AppliedFix | None = None

    @property
    def commands(self) -> tuple[Command, ...]:
        return self.fix.undo if self.change else self.fix.do

    @property
    def by_hand(self) -> str:
        """The reason why the fix cannot be made from here; '' if it can."""
        return self.rights.why if self.fix.root else ""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one fix; why: '' if it is done."""

    wanted: WantedFix
    outcome: FixOutcome
    why: str = ""


Work = Callable[[WantedFix], Coroutine[Any, Any, Result]]


async def mendable(services: Services, checked: CheckReport, only: Sequence[str] = ()) -> tuple[WantedFix, ...]:
    """The fixes that the findings carry, by node in the cluster's order. only: these codes, () for all."""
    pairs = [(f.code, f.fix) for f in checked.findings if f.fix and (not only or f.code in only)]
    rights = await rights_of(services, (fix.node for _, fix in pairs if fix.root), RIGHTS)
    wanted = [WantedFix(code, fix, rights.get(fix.node, Rights())) for code, fix in dict.fromkeys(pairs)]
    return tuple(sorted(wanted, key=lambda one: services.cluster.names.index(one.fix.node)))


async def undoable(
    services: Services, only: Sequence[str] = (), of_init: bool = False
) -> tuple[tuple[WantedFix, ...], tuple[NodeError, ...]]:
    """The recorded changes by node, the last first; and the nodes whose record could not be read.

    of_init: what `init` has made, else what `check --fix` has.
    """
    asked = (await by_node(services.cluster.names, lambda name: _undoable(services, name))).values()
    found = (w for one in asked if not isinstance(one, NodeError) for w in one if (w.code in INIT) == of_init)
    lost = tuple(one for one in asked if isinstance(one, NodeError))
    return tuple(wanted for wanted in found if not only or FORMER.get(wanted.code, wanted.code) in only), lost


async def apply_fixes(
    services: Services, wanted: Sequence[WantedFix], seize: bool
) -> tuple[tuple[Result, ...], CheckReport]:
    """Makes them, as far as they are still due under the nodes' leases, and checks again. Raises Busy."""
    async with holding(services, _nodes(wanted), "check --fix", seize):
        findings = (await check_nodes(services)).findings
        due = {(finding.code, finding.fix) for finding in findings}
        results = await _everywhere(services, wanted, lambda one: _mended(services, one, (one.code, one.fix) in due))
    return results, await check_nodes(services)


async def make_fixes(services: Services, wanted: Sequence[WantedFix]) -> tuple[Result, ...]:
    """Makes them under leases that the caller holds; what is so already is skipped and not recorded."""
    return await _everywhere(services, wanted, lambda one: _mended(services, one, True))


async def undo_fixes(
    services: Services, wanted: Sequence[WantedFix], seize: bool, why: str = "check --undo"
) -> tuple[Result, ...]:
    """Takes them back in the order given and forgets them; what others have changed since stays. Raises Busy."""
    async with holding(services, _nodes(wanted), why, seize):
        return await _everywhere(services, wanted, lambda one: _undone(services, one))


def _nodes(wanted: Iterable[WantedFix]) -> list[str]:
    """Nodes of the changes that can be made from here."""
    return list({one.fix.node for one in wanted if not one.by_hand})


async def with_password(services: Services, wanted: Sequence[WantedFix], password: Secret) -> tuple[WantedFix, ...]:
    """The same with a password for sudo, tried once on each node that wants one."""
    asking = (one.fix.node for one in wanted if one.rights.asks)
    rights = await rights_of(services, asking, rights_with(password))
    return tuple(replace(one, rights=rights.get(one.fix.node, one.rights)) for one in wanted)


async def rights_of(services: Services, nodes: Iterable[str], fact: Fact[Rights]) -> dict[str, Rights]:
    """The right to be root, by node. Asks only where root is needed: a sudo that refuses writes to the node's logs, or
    a mail."""

    async def one(node: str) -> Rights:
        try:
            found = await services.read(node, fact)
        except NodeError as error:
            return Rights(why=error.message)
        return Rights(why=found.why) if isinstance(found, Unknown) else found

    return await by_node(tuple(set(nodes)), one)


async def _undoable(services: Services, node: str) -> list[WantedFix] | NodeError:
    try:
        made = await record_of(services, node)
    except NodeError as error:
        return error
    known = await rights_of(services, [node] if any(change.fix.root for change in made) else [], RIGHTS)
    return [WantedFix(change.code, change.fix, known.get(node, Rights()), change) for change in reversed(made)]


async def _everywhere(services: Services, wanted: Sequence[WantedFix], work: Work) -> tuple[Result, ...]:
    """Nodes side by side, on each one after the other: an interrupt is heard between two of them."""

    async def on(node: str) -> list[Result]:
        return [await _tried(services, one, work) for one in wanted if one.fix.node == node]

    done = await finish_all(on(node) for node in dict.fromkeys(one.fix.node for one in wanted))
    return tuple(result for results in done for result in results)


async def _tried(services: Services, one: WantedFix, work: Work) -> Result:
    if one.by_hand:
        return Result(one, FixOutcome.BY_HAND, one.by_hand)
    what = "; ".join(command.changes for command in one.commands)
    services.sink.report(StepStarted(f"{one.fix.node} {one.code}", what))
    try:
        return await finished(work(one))
    except NodeError as error:
        return Result(one, FixOutcome.FAILED, error.message)


async def _mended(services: Services, wanted: WantedFix, due: bool) -> Result:
    fix = wanted.fix
    before = await value_of(services, fix)
    if not due or before == fix.sets:
        return Result(wanted, FixOutcome.SKIPPED, "it is so already" if before == fix.sets else _OTHERS)
    change = await begin_change(services, AppliedFix(wanted.code, fix, before, services.clock.now(), services.who))
    why = await run_commands(services, wanted, fix.do)
    if not why and (now := await value_of(services, fix)) != fix.sets:
        why = f"it is {_shown(now)} afterwards"
    if why:
        return Result(wanted, FixOutcome.FAILED, await _taken_back(services, wanted, change, why))
    await settle(services, change)
    return Result(wanted, FixOutcome.DONE)


async def settle(services: Services, change: AppliedFix) -> None:
    """Recorded as known to hold."""
    made, node = await record_of(services, change.fix.node), change.fix.node
    await _keep(services, node, [replace(one, done=True) if one == change else one for one in made])


async def begin_change(services: Services, change: AppliedFix) -> AppliedFix:
    """Recorded. An earlier attempt at the very same that was cut off counts in its place."""
    made = await record_of(services, change.fix.node)
    for one in made:
        if not one.done and (one.code, one.fix, one.before) == (change.code, change.fix, change.before):
            return one
    await _keep(services, change.fix.node, [*made, change])
    return change


async def _taken_back(services: Services, wanted: WantedFix, change: AppliedFix, why: str) -> str:
    """Undoes a change that failed half-way. Returns why it failed and how the undo went."""
    trouble = await run_commands(services, wanted, change.fix.undo)
    if trouble and await value_of(services, change.fix) != change.before:
        return f"{why}; and it could not be taken back: {trouble}; `check --undo` tries again"
    await forget(services, change)
    return f"{why}; nothing is changed"


async def _undone(services: Services, wanted: WantedFix) -> Result:
    change, fix = wanted.change, wanted.fix
    if change is None or change not in await record_of(services, fix.node):
        return Result(wanted, FixOutcome.SKIPPED, "it is no longer recorded: somebody else took it back")
    now = await value_of(services, fix)
    if now not in (fix.sets, change.before):
        why = f"changed since: it is {_shown(now)}, and was set to {_shown(fix.sets)}; left as it is"
        return Result(wanted, FixOutcome.SKIPPED, why)
    if why := await run_commands(services, wanted, fix.undo):
        return Result(wanted, FixOutcome.FAILED, why)
    await forget(services, change)
    return Result(wanted, FixOutcome.DONE)


async def forget(services: Services, change: AppliedFix) -> None:
    node = change.fix.node
    await _keep(services, node, [one for one in await record_of(services, node) if one != change])


async def run_commands(services: Services, wanted: WantedFix, commands: Sequence[Command]) -> str:
    """Runs the commands. Returns why one of them failed; '' if all succeeded."""
    fix, password = wanted.fix, wanted.rights.password
    for command in commands:
        done = await services.run(fix.node, as_root(command, password) if fix.root else command)
        if not done.ok:
            return f"{command.changes}: {first_line(done) or f'exit {done.exit_code}'}"
    return ""


async def value_of(services: Services, fix: Fix) -> str:
    return (await services.run(fix.node, fix.look)).stdout.strip()


def _shown(said: str) -> str:
    return ", ".join(said.split("\n")) if said else "not to be read"


async def record_of(services: Services, node: str) -> tuple[AppliedFix, ...]:
    """Raises CommandFailed for one that cannot be read: to write a new one would lose the way back."""
    state = services.state_on(node)
    made = await services.read(node, recorded(state))
    if isinstance(made, Unknown):
        what = f"{record_path(state)}, the record of `check --fix`, cannot be read: {made.why} {made.raw}"
        raise CommandFailed(node, what.strip(), "inspect it: without it nothing can be undone")
    return made


async def _keep(services: Services, node: str, made: Sequence[AppliedFix]) -> None:
    await services.hosts[node].put(record_text(made), record_path(services.state_on(node)), 0o600)
