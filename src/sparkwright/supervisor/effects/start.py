"""From nothing to a real token: what `up` does, with more patience for nodes that have just come back."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwright.app.launch import start_ranks
from sparkwright.app.plan import stopping
from sparkwright.app.prepare import Outcome, prepare
from sparkwright.app.ready import watched
from sparkwright.app.tasks import first_error
from sparkwright.app.watch import Watch
from sparkwright.domain.errors import Busy, NotReady, Refused, SparkwrightError, Unreachable
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.unknown import Unknown
from sparkwright.supervision import guard
from sparkwright.supervision.events import Launched, LaunchFailed, Ready
from sparkwright.supervision.recovery import of_findings
from sparkwright.supervision.state import Recovery
from sparkwright.supervisor.context import RELAUNCHES, STARTED_IN, DeploymentContext
from sparkwright.supervisor.effects.stop import AVAILABLE
from sparkwright.supervisor.sources.engine import asked, shown

# What has just been booted: Docker is given 300 s and the ports of the fabric 600 s.
_COMES_UP, _ELSE = 600.0, 15.0
_AGAIN = 2.0
_LEAST, _BUSY_AGAIN = 1.0, 0.5
_PROOF_EVERY = 2.0


async def launch(context: DeploymentContext) -> Launched | LaunchFailed:
    """Facts and fabric anew, then workers first. Busy: also while a node is out of reach, which is no launch."""
    try:
        outcome = await _prepared(context)
    except Unreachable as error:
        return LaunchFailed(context.now(), error.message, busy=True)
    except SparkwrightError as error:
        return _failed(context, error)
    finally:
        context.seen.doing = ""
    context.seen.launched_at = context.services.clock.monotonic()
    usual = context.keep.journal.recall().get(STARTED_IN, 0.0)
    context.seen.back_at = context.now() + usual if usual else 0.0
    context.remember(_available(outcome.cluster_state.facts))
    try:
        await _brought(context, outcome)
    except SparkwrightError as error:
        return _failed(context, error)
    finally:
        context.seen.doing = ""
    context.seen.relaunches += 1
    context.remember({RELAUNCHES: float(context.seen.relaunches)})
    return Launched(context.now(), _boots(outcome.cluster_state.facts))


def _failed(context: DeploymentContext, error: SparkwrightError) -> LaunchFailed:
    if isinstance(error, Refused):
        needs = of_findings(error.findings)
        why = _sentence(error.findings) or error.message
        return LaunchFailed(context.now(), why, guard.stronger(Recovery.RELAUNCH, needs.recovery))
    return LaunchFailed(context.now(), error.message, busy=isinstance(error, Busy))


async def _prepared(context: DeploymentContext) -> Outcome:
    """A plan that nothing forbids. Raises Refused or Unreachable when it has waited long enough."""
    began = context.services.clock.monotonic()
    while True:
        limit = _ELSE
        try:
            outcome = await prepare(context.services, context.launch_request)
            stops = stopping(outcome.plan, context.desired.force)
            if not stops and outcome.plan.specs:
                return outcome
            limit = _COMES_UP if _comes_up(outcome) else _ELSE
            failed: SparkwrightError = Refused(_sentence(stops) or "no fabric between the nodes", stops)
        except Unreachable as error:
            failed = error
        if context.services.clock.monotonic() - began > context.scaled(limit):
            raise failed
        context.seen.doing = failed.message
        await context.services.clock.sleep(max(context.scaled(_AGAIN), _LEAST))


async def _brought(context: DeploymentContext, outcome: Outcome) -> None:
    """Raises Busy when the leases are still somebody's after a while: another supervisor has them for seconds only."""
    began = context.services.clock.monotonic()
    while True:
        try:
            await start_ranks(context.services, context.launch_request, outcome, seize=False)
            return
        except Busy as busy:
            if context.services.clock.monotonic() - began > context.scaled(_ELSE):
                raise
            context.seen.doing = busy.message
            await context.services.clock.sleep(_BUSY_AGAIN)


def _comes_up(outcome: Outcome) -> bool:
    """Docker or the fabric is not there (yet)."""
    needs_docker = outcome.plan.recipe.engine.runtime is Runtime.DOCKER
    silent = any(isinstance(found.docker, Unknown) for found in outcome.cluster_state.facts.values())
    return not outcome.plan.specs or (needs_docker and silent)


def _sentence(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{f.code} {f.subject}: {f.title}" for f in findings[:3])


def _boots(facts: Mapping[str, NodeFacts]) -> tuple[tuple[str, str], ...]:
    """As samples have them: a node that went down after the stop was rebooted all the same."""
    known = {node: found.identity for node, found in facts.items() if not isinstance(found.identity, Unknown)}
    return tuple((node, who.boot) for node, who in known.items() if who.boot)


def _available(facts: Mapping[str, NodeFacts]) -> dict[str, float]:
    """What a stop has to give back."""
    known = {node: found.memory for node, found in facts.items() if not isinstance(found.memory, Unknown)}
    return {f"{AVAILABLE}{node}": float(memory.available) for node, memory in known.items()}


async def watch(context: DeploymentContext, ours: bool) -> Ready | LaunchFailed:
    """Until a real token. ours: started by this process; others may serve already, and have turned their logs over."""
    following = Watch(context.services, context.outline, context.engine, math.inf)
    ways = [watched(context.services, context.outline, following), *(() if ours else (_proved(context),))]
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except NotReady as error:
        return LaunchFailed(context.now(), error.message)
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if ours:
        context.remember({STARTED_IN: context.services.clock.monotonic() - context.seen.launched_at})
    return Ready(context.now())


async def _proved(context: DeploymentContext) -> None:
    """A token of our own, or figures that move: one that is busy with a prompt for a quarter of an hour serves, too."""
    before = None
    while (await asked(context)).seconds is None:
        figures = await shown(context)
        if before and figures and replace(figures, at=before.at) != before:
            return
        before = figures or before
        await context.pause(_PROOF_EVERY)
