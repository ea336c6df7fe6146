"""`up`: from a plan to an endpoint that has answered a real request."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from sparkwright.app import ranks as rank_work
from sparkwright.app.arm import Armed, Order, arm, record
from sparkwright.app.calibrate import calibrated, keep
from sparkwright.app.disarm import disarm, taking_over
from sparkwright.app.gate import unreal
from sparkwright.app.identity import looked_at
from sparkwright.app.inventory import inventory
from sparkwright.app.lease import Held, holding
from sparkwright.app.plan import make_plan, stopping
from sparkwright.app.ranks import all_ranks, listing
from sparkwright.app.ready import ask, until_ready
from sparkwright.app.stage import stage_image, stage_model
from sparkwright.app.standing import Old, is_up, replaced
from sparkwright.app.stop import clean, forget, old_ranks
from sparkwright.app.survey import nodes_for, survey
from sparkwright.app.swap import Swap, swapping
from sparkwright.app.tasks import finished, together
from sparkwright.app.world import Survey, Wish, World, resolved_paths
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import NotReady, Refused
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.finding import prevented
from sparkwright.domain.plan import Plan, RankSpec
from sparkwright.domain.progress import Notice, StepDone, StepStarted
from sparkwright.engines.catalog import engine as engine_by_name
from sparkwright.remote.lease import Of
from sparkwright.supervision.detect.garbage import babble
from sparkwright.supervision.findings import garbage_from_the_start

# What runs already answers a greeting in this time, or its start is watched.
_ATTACH = 10.0
# Steps of `up` that a relaunch does not have, or that are the sum of others.
_BEFORE = ("facts", "stage", "remove old ranks", "total")


@dataclass(frozen=True, slots=True)
class Options:
    dry_run: bool = False
    seize: bool = False
    detach: bool = False
    supervise: bool = False
    allow_reboot: bool = False
    rollback: bool = True


@dataclass
class Outcome:
    """What `up` did. done: 'planned', 'already serving', 'ready' or 'detached'. steps: (name, seconds) in order.

    fresh: its ranks were started by this call. armed: how it is supervised, if that was asked for. old: replaced.
    """

    plan: Plan
    survey: Survey
    done: str = "planned"
    answer: Answer | None = None
    steps: list[tuple[str, float]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    fresh: bool = False
    armed: Armed | None = None
    old: Old | None = None


async def up(world: World, wish: Wish, options: Options) -> Outcome:
    """Raises Refused, Busy, NotReady, Unreachable, CommandFailed; the nodes are then as before, logs of ranks kept.

    What served before serves again then, unless options say otherwise. Cancelled before the ranks run it undoes what
    was begun; after that the ranks go on, where they replace nothing.
    """
    outcome = await prepare(world, wish)
    ranks = old_ranks(outcome.plan, outcome.survey)
    if not wish.replaces and is_up(outcome.plan, ranks):
        if not options.dry_run:
            await _attach(world, outcome)
            await _supervise(world, wish, outcome, options)
        return outcome
    if wish.replaces or (ranks and world.program):
        outcome.old = await replaced(world, wish, ranks)
    if not options.dry_run:
        swap = Swap(world, wish, outcome.old, options.rollback and not options.detach, partial(again, world))
        async with swapping(swap, lambda: outcome.plan):
            await _serve(world, wish, outcome, options, swap)
            swap.kept = True
            await _supervise(world, wish, outcome, options)
    return outcome


async def again(world: World, wish: Wish, wait: bool) -> None:
    """What served before, from here: nothing supervises it."""
    outcome = await prepare(world, wish)
    await bring(world, wish, outcome, seize=False)
    await record(world, wish, outcome.plan)
    if wait:
        await until_ready(world, outcome.plan)


async def _serve(world: World, wish: Wish, outcome: Outcome, options: Options, swap: Swap) -> None:
    _refuse(outcome.plan, wish.force)
    swap.announce()
    with _step(world, outcome, "total", quiet=True):
        outcome.fresh = await bring(world, wish, outcome, options.seize, swap)
        if outcome.fresh and world.program and not options.supervise:
            await record(world, wish, outcome.plan)
        if not outcome.fresh:
            await _attach(world, outcome)
        elif options.detach:
            outcome.done = "detached"
        else:
            await _until_ready(world, outcome, quiet=swap.begun and swap.again)


async def _supervise(world: World, wish: Wish, outcome: Outcome, options: Options) -> None:
    """Only what serves is supervised: a first start that fails is for the one who called."""
    if options.supervise and world.program:
        gateway = outcome.old.gateway if outcome.old and wish.replaces else 0
        order = Order(options.allow_reboot, outcome.fresh, _figures(outcome), wish.replaces, gateway)
        with _step(world, outcome, "supervise", quiet=True):
            outcome.armed = await arm(world, wish, outcome.plan, order)
    elif world.program and not outcome.fresh:
        await disarm(world, outcome.plan.placement.nodes, outcome.plan.deployment)


def _figures(outcome: Outcome) -> dict[str, float]:
    """What a relaunch can be held against."""
    memory = {name: facts.memory for name, facts in outcome.survey.facts.items()}
    found = {f"available:{n}": float(told.available) for n, told in memory.items() if not isinstance(told, Unknown)}
    took = sum(seconds for name, seconds in outcome.steps if name not in _BEFORE)
    return found | ({"started in": took} if outcome.done == "ready" else {})


async def prepare(world: World, wish: Wish) -> Outcome:
    """Facts and plan; changes nothing."""
    steps: list[tuple[str, float]] = []
    nodes = nodes_for(world, wish.recipe)
    began = world.clock.monotonic()
    world.sink.tell(StepStarted("facts", f"asking {', '.join(n.name for n in nodes)}"))
    found = calibrated(world, wish, await survey(world, nodes, wish.recipe))
    plan = make_plan(world, wish, found)
    if plan.verdict is not None and not plan.verdict.fits and not unreal(plan.cluster, plan.recipe):
        # Another checkpoint on these nodes' disks may be what fits; nobody else needs to know of them.
        found = replace(found, stored=(await inventory(world, nodes, [wish.recipe])).stored)
        plan = make_plan(world, wish, found)
    steps.append(("facts", world.clock.monotonic() - began))
    world.sink.tell(StepDone("facts", steps[-1][1]))
    return Outcome(plan, found, steps=steps)


def _refuse(plan: Plan, force: str) -> None:
    stops = stopping(plan, force)
    if stops:
        hint = "" if any(f.severity == "block" for f in stops) else "to go on all the same: --force REASON (recorded)"
        raise Refused(f"{plan.deployment}: not started: {prevented(stops)}", stops, hint, plan.remedies)


async def _attach(world: World, outcome: Outcome) -> None:
    """The same ranks run already: serving, or still on their way."""
    with suppress(NotReady, TimeoutError):
        async with asyncio.timeout(_ATTACH):
            _answered(outcome, await ask(world, outcome.plan))
            outcome.done = "already serving"
            return
    world.sink.tell(Notice(f"{outcome.plan.deployment}: its ranks run already and do not answer yet; watching them"))
    await _until_ready(world, outcome, ours=False)


async def bring(world: World, wish: Wish, outcome: Outcome, seize: bool, swap: Swap | None = None) -> bool:
    """Stages and starts the ranks. False: somebody else has started the same ones meanwhile.

    What serves is staged for without the ranks' lease: it can be launched again while hours of weights are copied.
    """
    nodes = list(dict.fromkeys(outcome.plan.placement.nodes))
    swap = swap or Swap(world, wish)
    found = await listing(world, [name for name in world.cluster.names if name not in nodes])
    elsewhere = [rank for rank in found.ranks if rank.deployment in swap.names]
    nodes += dict.fromkeys(r.node for r in elsewhere)
    running = False
    try:
        if early := bool(swap.old and swap.old.supervised):
            await _stage(world, wish, outcome, seize)
        async with taking_over(world, nodes, swap.other or wish.deployment, f"up {wish.recipe.name}", seize) as held:
            # What the survey saw may be history: it was taken before the lease.
            old = tuple(r for r in await all_ranks(world, nodes) if r.deployment in swap.names)
            if is_up(outcome.plan, old) and not elsewhere and not swap.other:
                return False
            if not early:
                await _stage(world, wish, outcome, seize)
            await _launch(world, outcome, old, held, swap)
            running = True
        return True
    except asyncio.CancelledError:
        if not (swap.begun and swap.again):
            _interrupted(world, outcome.plan, running, swap)
        raise


def _interrupted(world: World, plan: Plan, running: bool, swap: Swap | None = None) -> None:
    name = plan.deployment
    text = f"interrupted: nothing of {name} was left running, the leases are given back"
    if swap and swap.old and not swap.begun:
        text = f"interrupted: {swap.old.name} was not touched, the leases are given back"
    if running:
        text = (
            f"interrupted: the ranks of {name} go on without this command. To watch on: the same `sparkwright up` "
            f"again, to look: `sparkwright status`, to end them: `sparkwright down {name}`"
        )
    world.sink.tell(Notice(text, warning=True))


async def _stage(world: World, wish: Wish, outcome: Outcome, seize: bool) -> None:
    """First the images, which are looked into, then the weights. Where all is there, nothing is done."""
    nodes, why = dict.fromkeys(outcome.plan.placement.nodes), f"up {wish.recipe.name}: stage"
    async with holding(world, list(nodes), why, seize, Of.STAGING):
        with _step(world, outcome, "stage"):
            for bring in (stage_image, stage_model):
                if await bring(world, outcome.plan, outcome.survey):
                    found = await survey(world, nodes_for(world, wish.recipe), wish.recipe)
                    outcome.survey = calibrated(world, wish, found)
                    outcome.plan = make_plan(world, wish, outcome.survey)
                    _refuse(outcome.plan, wish.force)
                await _look(world, wish, outcome)


async def _look(world: World, wish: Wish, outcome: Outcome) -> None:
    """What the image really holds: another engine than the recipe's is named before a byte of weights is copied."""
    found = await looked_at(world, wish.recipe, outcome.plan.placement.nodes, outcome.survey)
    if found is not outcome.survey:
        outcome.survey, outcome.plan = found, make_plan(world, wish, found)
        _refuse(outcome.plan, wish.force)


async def _launch(world: World, outcome: Outcome, old: Sequence[RankStatus], held: Held, swap: Swap) -> None:
    """Old ranks gone everywhere, then workers, then head. Whatever interrupts it, nothing of it stays."""
    plan, grace = outcome.plan, engine_by_name(outcome.plan.recipe.engine.name).stop.grace
    await finished(swap.begin())
    for name in swap.unsupervised if world.program else ():
        await finished(disarm(world, held.nodes, name))
    if old:
        with _step(world, outcome, "remove old ranks"):
            await finished(rank_work.stop_all(world, old, grace, remove=True))
            for name in swap.names:
                await forget(world, held.nodes, name)
    with _step(world, outcome, "start ranks"):
        try:
            # A start that was cut off half-way could not be cleaned: the daemon may go on with it.
            await together(finished(_start(world, outcome, spec)) for spec in plan.specs[1:])
            await finished(_start(world, outcome, plan.specs[0]))
        except BaseException:
            if not held.lost:
                await finished(clean(world, plan))
            raise


async def _start(world: World, outcome: Outcome, spec: RankSpec) -> None:
    """With unlimited memlock unless the daemon is known not to be able to give it (rule DOCK004 says so)."""
    found, docker = outcome.survey, outcome.survey.facts[spec.node].docker
    state = resolved_paths(world.cluster.node(spec.node), found.facts[spec.node]).state
    memlock = isinstance(docker, Unknown) or docker.can_raise_memlock is not False
    way = rank_work.Way(state, found.images.get(spec.node, ("", 0))[0], memlock)
    await rank_work.start(world, outcome.plan, spec, way)


async def _until_ready(world: World, outcome: Outcome, ours: bool = True, quiet: bool = False) -> None:
    try:
        answer, watch = await until_ready(world, outcome.plan, ours)
    except asyncio.CancelledError:
        if not quiet:
            _interrupted(world, outcome.plan, running=True)
        raise
    _answered(outcome, answer)
    outcome.done, outcome.facts = "ready", watch.facts
    outcome.steps += watch.steps()
    keep(world, outcome.plan, outcome.survey, watch, timed=ours)


def _answered(outcome: Outcome, answer: Answer) -> None:
    """Judged as the supervisor judges later ones."""
    outcome.answer = answer
    if why := babble(answer.text):
        found = garbage_from_the_start(outcome.plan.deployment, why, answer.text)
        outcome.plan = replace(outcome.plan, findings=(*outcome.plan.findings, found))


@contextmanager
def _step(world: World, outcome: Outcome, name: str, quiet: bool = False) -> Iterator[None]:
    began = world.clock.monotonic()
    if not quiet:
        world.sink.tell(StepStarted(name))
    yield
    outcome.steps.append((name, world.clock.monotonic() - began))
    if not quiet:
        world.sink.tell(StepDone(name, outcome.steps[-1][1]))
