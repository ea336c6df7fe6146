"""`up`: from a plan to an endpoint that has answered a real request."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import holding
from sparkwright.app.plan import make_plan, same_ranks, stopping
from sparkwright.app.stage import stage
from sparkwright.app.stop import deployment_ranks, forget, old_ranks
from sparkwright.app.survey import nodes_for, survey
from sparkwright.app.watch import Watch
from sparkwright.app.world import Survey, Wish, World
from sparkwright.domain.deployment import Answer, Phase
from sparkwright.domain.errors import NotReady, Refused, SparkwrightError
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.plan import Plan
from sparkwright.engines.catalog import engine as engine_by_name
from sparkwright.ports import Notice, StepDone, StepStarted

QUESTION = "Say hello in one short sentence."
ANSWER_TOKENS = 64
# A model that thinks first may need more than a greeting's worth; any token of it proves that the ranks work together.
ASK_AGAIN_AFTER = 1.0


@dataclass(frozen=True, slots=True)
class Options:
    dry_run: bool = False
    seize: bool = False
    detach: bool = False


@dataclass
class Outcome:
    """What `up` did. done: 'planned', 'already serving', 'ready' or 'detached'. steps: (name, seconds) in order."""

    plan: Plan
    survey: Survey
    done: str = "planned"
    answer: Answer | None = None
    steps: list[tuple[str, float]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)


async def up(world: World, wish: Wish, options: Options) -> Outcome:
    """Raises Refused, Busy, NotReady, Unreachable, CommandFailed; the nodes are then as before, logs of ranks kept."""
    outcome = await prepare(world, wish)
    if options.dry_run:
        return outcome
    running = old_ranks(outcome.plan, outcome.survey)
    if _is_up(outcome.plan, running):
        return await _attach(world, outcome)
    _refuse(outcome.plan, wish.force)
    with _step(world, outcome, "total", quiet=True):
        async with holding(world, outcome.plan.placement.nodes, f"up {wish.recipe.name}", options.seize):
            await _stage(world, wish, outcome)
            await _launch(world, outcome)
        if options.detach:
            outcome.done = "detached"
            return outcome
        await _until_ready(world, outcome)
    return outcome


async def prepare(world: World, wish: Wish) -> Outcome:
    """Facts and plan; changes nothing."""
    steps: list[tuple[str, float]] = []
    nodes = nodes_for(world, wish.recipe)
    began = world.clock.monotonic()
    world.sink.tell(StepStarted("facts", f"asking {', '.join(n.name for n in nodes)}"))
    found = await survey(world, nodes, wish.recipe)
    steps.append(("facts", world.clock.monotonic() - began))
    world.sink.tell(StepDone("facts", steps[-1][1]))
    return Outcome(make_plan(world, wish, found), found, steps=steps)


def _refuse(plan: Plan, force: str) -> None:
    stops = stopping(plan, force)
    if stops:
        cure = "" if any(f.severity == "block" for f in stops) else "to go on all the same: --force REASON (recorded)"
        raise Refused(f"{plan.deployment}: not started, {len(stops)} finding(s) forbid it", stops, cure)


def _is_up(plan: Plan, running: tuple[RankStatus, ...]) -> bool:
    alive = sorted((r for r in running if r.running), key=lambda r: r.rank)
    placed = [r.node for r in alive] == list(plan.placement.nodes)
    return bool(plan.specs) and placed and same_ranks(plan, [r.spec_hash for r in alive])


async def _attach(world: World, outcome: Outcome) -> Outcome:
    """The same ranks run already: serving, or still on their way."""
    with suppress(NotReady, TimeoutError):
        async with asyncio.timeout(10):
            outcome.answer = await ask(world, outcome.plan)
            outcome.done = "already serving"
            return outcome
    world.sink.tell(Notice(f"{outcome.plan.deployment}: its ranks run already and do not answer yet; watching them"))
    await _until_ready(world, outcome)
    return outcome


async def _stage(world: World, wish: Wish, outcome: Outcome) -> None:
    with _step(world, outcome, "stage"):
        if await stage(world, outcome.plan, outcome.survey):
            nodes = nodes_for(world, wish.recipe)
            outcome.survey = await survey(world, nodes, wish.recipe)
            outcome.plan = make_plan(world, wish, outcome.survey)
            _refuse(outcome.plan, wish.force)


async def _launch(world: World, outcome: Outcome) -> None:
    """Old ranks gone everywhere, then workers, then head. Whatever interrupts it, nothing of it stays."""
    plan, engine = outcome.plan, engine_by_name(outcome.plan.recipe.engine.name)
    old = old_ranks(plan, outcome.survey)
    if old:
        with _step(world, outcome, "remove old ranks"):
            await rank_work.stop_all(world, old, engine.stop.grace, remove=True)
    with _step(world, outcome, "start ranks"):
        try:
            async with asyncio.TaskGroup() as group:
                for spec in plan.specs[1:]:
                    group.create_task(_start(world, outcome, spec.rank))
            await _start(world, outcome, 0)
            await record(world, plan)
        except BaseException as error:
            await asyncio.shield(_clean(world, plan))
            raise _first(error) from None


async def _start(world: World, outcome: Outcome, rank: int) -> None:
    spec = outcome.plan.specs[rank]
    image = outcome.survey.images.get(spec.node, ("", 0))[0]
    await rank_work.start(world, outcome.plan, spec, image, _memlock(outcome.survey, spec.node))


def _memlock(found: Survey, node: str) -> bool:
    """Ask for unlimited memlock unless the daemon is known not to be able to give it (rule DOCK004 says so)."""
    docker = found.facts[node].docker
    return isinstance(docker, Unknown) or docker.can_raise_memlock is not False


async def _until_ready(world: World, outcome: Outcome) -> None:
    plan = outcome.plan
    watch = Watch(world, plan, engine_by_name(plan.recipe.engine.name))
    world.sink.tell(StepStarted("engine", f"{plan.recipe.engine.name} {plan.recipe.engine.version} starts"))
    try:
        outcome.answer = await _watched(world, plan, watch)
    except SparkwrightError as error:
        logs = await asyncio.shield(_fail(world, plan, watch))
        if isinstance(error, NotReady):
            error.logs = logs
        raise
    outcome.done, outcome.facts = "ready", watch.facts
    outcome.steps += _phase_steps(watch, world.clock.monotonic())
    world.sink.tell(StepDone("engine", world.clock.monotonic() - watch.began))


async def _watched(world: World, plan: Plan, watch: Watch) -> Answer:
    """The answer, unless a rank ends or stands still before."""
    try:
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(watch.follow(rank)) for rank in watch.ranks]
            jobs.append(group.create_task(watch.guard()))
            await watch.ready.wait()
            watch.answering = True
            watch.phases[Phase.ANSWER] = world.clock.monotonic()
            world.sink.tell(StepStarted("answer", "asking for a real completion"))
            answer = await ask(world, plan)
            for job in jobs:
                job.cancel()
    except BaseExceptionGroup as group_error:
        raise _first(group_error) from None
    return answer


async def ask(world: World, plan: Plan) -> Answer:
    """A chat completion through a tunnel to the head: the same way whatever the endpoint is bound to."""
    address = "127.0.0.1" if plan.bind == "0.0.0.0" else plan.bind
    key = world.secrets.get(plan.recipe.serving.api_key_env)
    async with world.hosts[plan.head].tunnel(address, plan.port) as url:
        answer = await world.endpoint.ask(url, plan.served_name, QUESTION, ANSWER_TOKENS, key)
    if answer.completion_tokens < 1:
        raise NotReady(f"{plan.deployment}: the endpoint answered without a single token", "see `sparkwright logs`")
    return answer


async def record(world: World, plan: Plan) -> None:
    """Desired state on the head: what should be serving, for whoever looks from another machine."""
    content = {
        "deployment": plan.deployment,
        "cluster": plan.cluster.name,
        "recipe": plan.specs[0].labels["recipe"],
        "recipe_hash": plan.recipe.hash,
        "nodes": list(plan.placement.nodes),
        "by": world.who,
        "at": int(world.clock.now()),
    }
    state = world.cluster.node(plan.head).paths.state
    path = f"{state}/deployments/{plan.deployment}/desired.json"
    await world.hosts[plan.head].put(json.dumps(content, indent=1).encode(), path, 0o600)


async def _fail(world: World, plan: Plan, watch: Watch) -> str:
    """Keeps every rank's log here, then stops the ranks; containers and log files stay on the nodes until `down`."""
    where = ""
    for rank in watch.ranks:
        name = f"rank{rank.spec.rank}-{rank.spec.node}.log"
        where = world.artifacts.save(plan.deployment, name, "\n".join(rank.lines) + "\n")
    with suppress(SparkwrightError, BaseExceptionGroup):
        found = await deployment_ranks(world, plan.placement.nodes, plan.deployment)
        grace = engine_by_name(plan.recipe.engine.name).stop.grace
        await rank_work.stop_all(world, found, grace, remove=False)
    return where.rpartition("/")[0]


async def _clean(world: World, plan: Plan) -> None:
    with suppress(SparkwrightError, BaseExceptionGroup):
        found = await deployment_ranks(world, plan.placement.nodes, plan.deployment)
        await rank_work.stop_all(world, found, 5, remove=True)
    with suppress(SparkwrightError, BaseExceptionGroup):
        await forget(world, plan.placement.nodes, plan.deployment)


def _phase_steps(watch: Watch, now: float) -> list[tuple[str, float]]:
    """Seconds between the head's phase changes; the first begins with the start of the watch."""
    marks = sorted(watch.phases.items(), key=lambda item: item[1])
    starts = [(str(Phase.START), watch.began), *((str(phase), at) for phase, at in marks)]
    ends = [at for _, at in starts[1:]] + [now]
    return [(name, end - begin) for (name, begin), end in zip(starts, ends, strict=True)]


def _first(error: BaseException) -> BaseException:
    """The first real error of a group; a cancellation only when there is nothing else."""
    while isinstance(error, BaseExceptionGroup):
        ours = [e for e in error.exceptions if not isinstance(e, asyncio.CancelledError)]
        error = (ours or list(error.exceptions))[0]
    return error


@contextmanager
def _step(world: World, outcome: Outcome, name: str, quiet: bool = False) -> Iterator[None]:
    began = world.clock.monotonic()
    if not quiet:
        world.sink.tell(StepStarted(name))
    yield
    outcome.steps.append((name, world.clock.monotonic() - began))
    if not quiet:
        world.sink.tell(StepDone(name, outcome.steps[-1][1]))
