"""From nothing to a real token: what `up` does, with more patience for nodes that have just come back."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwright.app.launch import Outcome, bring, prepare
from sparkwright.app.plan import stopping
from sparkwright.app.ready import watched
from sparkwright.app.supervise.site import RELAUNCHES, STARTED_IN, Site
from sparkwright.app.supervise.sources.engine import asked, shown
from sparkwright.app.supervise.works.stop import AVAILABLE
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

# What has just been booted: Docker is given 300 s and the ports of the fabric 600 s (field guide F4).
_COMES_UP, _ELSE = 600.0, 15.0
_AGAIN = 2.0
_LEAST = 1.0
_PROOF_EVERY = 2.0


async def launch(site: Site) -> Launched | LaunchFailed:
    """Facts and fabric anew, then workers first. Busy: also while a node is out of reach, which is no launch."""
    try:
        outcome = await _prepared(site)
    except Unreachable as error:
        return LaunchFailed(site.now(), error.message, busy=True)
    except SparkwrightError as error:
        return _failed(site, error)
    finally:
        site.seen.doing = ""
    site.seen.launched_at = site.world.clock.monotonic()
    usual = site.keep.journal.recall().get(STARTED_IN, 0.0)
    site.seen.back_at = site.now() + usual if usual else 0.0
    site.remember(_available(outcome.survey.facts))
    try:
        await _brought(site, outcome)
    except SparkwrightError as error:
        return _failed(site, error)
    finally:
        site.seen.doing = ""
    site.seen.relaunches += 1
    site.remember({RELAUNCHES: float(site.seen.relaunches)})
    return Launched(site.now(), _boots(outcome.survey.facts))


def _failed(site: Site, error: SparkwrightError) -> LaunchFailed:
    if isinstance(error, Refused):
        needs = of_findings(error.findings)
        why = _sentence(error.findings) or error.message
        return LaunchFailed(site.now(), why, guard.stronger(Recovery.RELAUNCH, needs.recovery))
    return LaunchFailed(site.now(), error.message, busy=isinstance(error, Busy))


async def _prepared(site: Site) -> Outcome:
    """A plan that nothing forbids. Raises Refused or Unreachable when it has waited long enough."""
    began = site.world.clock.monotonic()
    while True:
        limit = _ELSE
        try:
            outcome = await prepare(site.world, site.wish)
            stops = stopping(outcome.plan, site.desired.force)
            if not stops and outcome.plan.specs:
                return outcome
            limit = _COMES_UP if _comes_up(outcome) else _ELSE
            failed: SparkwrightError = Refused(_sentence(stops) or "no fabric between the nodes", stops)
        except Unreachable as error:
            failed = error
        if site.world.clock.monotonic() - began > site.scaled(limit):
            raise failed
        site.seen.doing = failed.message
        await site.world.clock.sleep(max(site.scaled(_AGAIN), _LEAST))


async def _brought(site: Site, outcome: Outcome) -> None:
    """Raises Busy when the leases are still somebody's after a while: another supervisor has them for seconds only."""
    began = site.world.clock.monotonic()
    while True:
        try:
            await bring(site.world, site.wish, outcome, seize=False)
            return
        except Busy as busy:
            if site.world.clock.monotonic() - began > site.scaled(_ELSE):
                raise
            site.seen.doing = busy.message
            await site.world.clock.sleep(max(site.scaled(_AGAIN), _LEAST))


def _comes_up(outcome: Outcome) -> bool:
    """Docker or the fabric is not there (yet)."""
    needs_docker = outcome.plan.recipe.engine.runtime is Runtime.DOCKER
    silent = any(isinstance(found.docker, Unknown) for found in outcome.survey.facts.values())
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


async def watch(site: Site, ours: bool) -> Ready | LaunchFailed:
    """Until a real token. ours: started by this process; others may serve already, and have turned their logs over."""
    following = Watch(site.world, site.outline, site.engine, math.inf)
    ways = [watched(site.world, site.outline, following), *(() if ours else (_proved(site),))]
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except NotReady as error:
        return LaunchFailed(site.now(), error.message)
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if ours:
        site.remember({STARTED_IN: site.world.clock.monotonic() - site.seen.launched_at})
    return Ready(site.now())


async def _proved(site: Site) -> None:
    """A token of our own, or figures that move: one that is busy with a prompt for a quarter of an hour serves, too."""
    before = None
    while (await asked(site)).seconds is None:
        figures = await shown(site)
        if before and figures and replace(figures, at=before.at) != before:
            return
        before = figures or before
        await site.pause(_PROOF_EVERY)
