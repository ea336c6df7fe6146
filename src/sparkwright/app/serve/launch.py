"""`up`: from a plan to an endpoint that has answered a real request."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from sparkwright.app import ranks as rank_work
from sparkwright.app.cluster_state import gather_state, looked_at, nodes_for
from sparkwright.app.copy.stage import stage_image, stage_model
from sparkwright.app.lease import Leases, holding, remove_supervisor, taking_over
from sparkwright.app.plan.engine_options import with_options
from sparkwright.app.plan.gate import calibrated
from sparkwright.app.plan.planning import make_plan
from sparkwright.app.ranks import all_ranks, listing
from sparkwright.app.serve.cache_disks import STARTED_WITHOUT, prepare_disks
from sparkwright.app.serve.changed import remember, report_changes
from sparkwright.app.serve.coherence import judged_answers, wants_coherence
from sparkwright.app.serve.figures import save_figures
from sparkwright.app.serve.free import free_memory
from sparkwright.app.serve.gateway import refuse_shared_change
from sparkwright.app.serve.install_supervisor import InstallOptions, install_supervisor, record
from sparkwright.app.serve.keepers import end_keepers, keep_weights, left_free
from sparkwright.app.serve.load_guard import LoadGuard, figures_of, load_floors
from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.app.serve.ready import ask_model, until_ready
from sparkwright.app.serve.running import is_running, replaced, require_its_nodes
from sparkwright.app.serve.standby import reclaim_role
from sparkwright.app.serve.stop import clean_nodes, forget, old_ranks
from sparkwright.app.serve.swap import Swap, swapping
from sparkwright.app.services import ClusterState, LaunchRequest, Services, finished, together
from sparkwright.checks.supervision import GARBAGE
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import CommandFailed, NotReady, Refused
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.finding import prevented
from sparkwright.domain.homes import resolved_paths
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.units import DRAIN_SECONDS
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import engine_of, start_groups
from sparkwright.evals.coherence import Coherence, babble
from sparkwright.remote.lease import Of

# What runs already answers a greeting in this time, or its start is watched.
_ATTACH = 10.0
# Steps of `up` that a relaunch does not have, or that are the sum of others.
_BEFORE = ("facts", "stage", "remove old ranks", "free memory", "coherence", "parsers", "total")


@dataclass(frozen=True, slots=True)
class Options:
    """ends: the caller takes the deployment down if it is interrupted, so nothing runs on."""

    dry_run: bool = False
    seize: bool = False
    detach: bool = False
    supervise: bool = False
    allow_reboot: bool = False
    rollback: bool = True
    drain: float = DRAIN_SECONDS
    ends: bool = False


async def up(services: Services, request: LaunchRequest, options: Options) -> Outcome:
    """Raises Refused, Busy, NotReady, Unreachable, CommandFailed; the nodes are then as before, logs of ranks kept.

    What served before serves again then, unless options exclude it. Cancelled before the ranks run it undoes what
    was begun; after that the ranks go on, where they replace nothing.
    """
    if options.supervise and not options.dry_run:
        await reclaim_role(services)
    outcome = await prepare(services, request)
    request = outcome.request or request
    ranks = old_ranks(outcome.plan, outcome.cluster_state)
    if ranks and options.supervise and services.program:
        await refuse_shared_change(services, outcome.plan)
    if not request.replaces and is_running(outcome.plan, ranks):
        if not options.dry_run:
            await _attach(services, outcome)
            await _supervise(services, request, outcome, options)
        return outcome
    if request.replaces or (ranks and services.program):
        outcome.old = await replaced(services, request, ranks)
    if not options.dry_run:
        back = options.rollback and not options.detach
        swap = Swap(services, request, outcome.old, back, partial(restore_previous, services), options.drain)
        async with swapping(swap, lambda: outcome.plan):
            await _serve(services, request, outcome, options, swap)
            swap.kept = True
            await _supervise(services, request, outcome, options)
    return outcome


async def restore_previous(services: Services, request: LaunchRequest, wait: bool) -> None:
    """Starts the previous deployment again from here; nothing supervises it."""
    outcome = await prepare(services, request)
    request = outcome.request or request
    await start_ranks(services, request, outcome, seize=False)
    await record(services, request, outcome.plan)
    if wait:
        await until_ready(services, outcome.plan, outcome.cluster_state.facts)


async def _serve(services: Services, request: LaunchRequest, outcome: Outcome, options: Options, swap: Swap) -> None:
    _refuse(outcome.plan, request.force)
    swap.announce()
    if swap.old and swap.again:
        await require_its_nodes(services, swap.old)
    with _step(services, outcome, "total", quiet=True):
        outcome.fresh = await start_ranks(services, request, outcome, options.seize, swap)
        if outcome.fresh and services.program and not options.supervise:
            await record(services, request, outcome.plan)
        if not outcome.fresh:
            await _attach(services, outcome)
        elif options.detach:
            outcome.done = "detached"
            if not (options.supervise and services.program):
                await LoadGuard(services, outcome.plan).leave()
        else:
            await _until_ready(services, outcome, quiet=options.ends or (swap.begun and swap.again))


async def _supervise(services: Services, request: LaunchRequest, outcome: Outcome, options: Options) -> None:
    """Installs the supervisor of what serves: a first start that fails is for the one who called."""
    if options.supervise and services.program:
        install = InstallOptions(options.allow_reboot, outcome.fresh, _figures(outcome), request.replaces)
        with _step(services, outcome, "supervise", quiet=True):
            outcome.armed = await install_supervisor(services, request, outcome.plan, install)
    elif services.program and not outcome.fresh:
        await remove_supervisor(services, outcome.plan.placement.nodes, outcome.plan.deployment)


def _figures(outcome: Outcome) -> dict[str, float]:
    """Figures of this start, for comparison with a relaunch."""
    found = {f"available:{n}": size for n, size in left_free(outcome.plan, outcome.cluster_state.facts).items()}
    found |= outcome.claims | ({STARTED_WITHOUT: 1.0} if outcome.without else {})
    for ledger in outcome.plan.ledgers:
        found |= figures_of(ledger.node, load_floors(ledger))
    took = sum(seconds for name, seconds in outcome.steps if name not in _BEFORE)
    return found | ({"started in": took} if outcome.done in ("ready", "garbled") else {})


def _refuse(plan: Plan, force: str) -> None:
    stops = stopping(plan, force)
    if stops:
        hint = "" if any(f.severity == "block" for f in stops) else "to start it anyway: --force REASON (recorded)"
        raise Refused(f"{plan.deployment}: not started: {prevented(stops)}", stops, hint, plan.remedies)


async def _attach(services: Services, outcome: Outcome) -> None:
    """The same ranks run already: serving, or still on their way."""
    with suppress(NotReady, TimeoutError):
        async with asyncio.timeout(_ATTACH):
            _answered(outcome, await ask_model(services, outcome.plan))
            outcome.done = "already serving"
            return
    services.notice(f"{outcome.plan.deployment}: its ranks run already and do not answer yet; watching them")
    await _until_ready(services, outcome, ours=False)


async def start_ranks(
    services: Services, request: LaunchRequest, outcome: Outcome, seize: bool, swap: Swap | None = None
) -> bool:
    """Stages and starts the ranks. False: somebody else has started the same ones meanwhile.

    What serves is staged for without the ranks' lease: it can be launched again while hours of weights are copied.
    """
    nodes = list(dict.fromkeys(outcome.plan.placement.nodes))
    swap, running = swap or Swap(services, request), False
    others = await listing(services, [name for name in services.cluster.names if name not in nodes])
    elsewhere = dict.fromkeys(rank.node for rank in others.ranks if rank.deployment in swap.names)
    nodes += elsewhere
    try:
        if early := bool(swap.old and swap.old.supervised):
            await _stage(services, request, outcome, seize)
        name, why = swap.other or request.deployment, f"up {request.recipe.name}"
        async with taking_over(services, nodes, name, why, seize) as held:
            # What was gathered may be history: it was taken before the lease.
            old = tuple(r for r in await all_ranks(services, nodes) if r.deployment in swap.names)
            if is_running(outcome.plan, old) and not elsewhere and not swap.other:
                return False
            if not early:
                await _stage(services, request, outcome, seize)
            await _launch(services, outcome, old, held, swap)
            running = True
        return True
    except asyncio.CancelledError:
        if not (swap.begun and swap.again):
            _interrupted(services, outcome.plan, running, swap)
        raise


def _interrupted(services: Services, plan: Plan, running: bool, swap: Swap | None = None) -> None:
    name = plan.deployment
    text = f"interrupted: rolled back, nothing of {name} is running; leases are released"
    if swap and swap.old and not swap.begun:
        text = f"interrupted: {swap.old.name} was not touched; leases are released"
    if running:
        text = f"interrupted: the ranks of {name} continue to run. Attach again: the same `sparkwright up`; "
        text += f"inspect: `sparkwright status`; stop: `sparkwright down {name}`"
    services.notice(text, warning=True)


async def _stage(services: Services, request: LaunchRequest, outcome: Outcome, seize: bool) -> None:
    """First the images, which are looked into, then the weights. Where all is there, nothing is done."""
    nodes, why = dict.fromkeys(outcome.plan.placement.nodes), f"up {request.recipe.name}: stage"
    async with holding(services, list(nodes), why, seize, Of.STAGING):
        with _step(services, outcome, "stage"):
            for stage in (stage_image, stage_model):
                if await stage(services, outcome.plan, outcome.cluster_state):
                    found = await gather_state(services, nodes_for(services, request.recipe), request.recipe)
                    _replan(services, request, outcome, calibrated(services, request, found))
                # What the image really holds: another engine than the recipe's is named before weights are copied
                found = await looked_at(services, request.recipe, outcome.plan.placement.nodes, outcome.cluster_state)
                found = await with_options(services, request.recipe, outcome.plan.placement.nodes, found)
                if found is not outcome.cluster_state:
                    _replan(services, request, outcome, found)


def _replan(services: Services, request: LaunchRequest, outcome: Outcome, found: ClusterState) -> None:
    outcome.cluster_state, outcome.plan = found, make_plan(services, request, found)
    _refuse(outcome.plan, request.force)


async def _launch(services: Services, outcome: Outcome, old: Sequence[RankStatus], held: Leases, swap: Swap) -> None:
    """Old ranks gone everywhere, then the new ones in their engine's order. If it is cut off, nothing of it stays."""
    plan, grace = outcome.plan, engine_of(outcome.plan.recipe).stop.grace
    await finished(swap.begin())
    for name in swap.unsupervised if services.program else ():
        await finished(remove_supervisor(services, (*held.nodes, services.cluster.supervisor_node), name))
    if old:
        with _step(services, outcome, "remove old ranks"):
            await finished(rank_work.stop_all(services, old, grace, remove=True))
            for name in swap.names:
                await forget(services, held.nodes, name)
    kept = {spec.keeper.spec.labels["keeper-hash"] for spec in plan.specs if spec.keeper}
    if kept or old:
        await finished(end_keepers(services, held.nodes, swap.names, but=kept))
    await prepare_disks(services, outcome.request or swap.launch_request, outcome)
    plan = outcome.plan
    with _step(services, outcome, "free memory", quiet=True):
        await free_memory(services, plan, outcome.cluster_state)
    if kept:
        with _step(services, outcome, "keep weights"):
            await _keep(services, outcome)
    with _step(services, outcome, "start ranks"):
        try:
            # A start that was cut off half-way could not be cleaned: the daemon may go on with it.
            for group in start_groups(plan.recipe, plan.specs):
                ways = [(spec, _way(services, outcome, spec.node)) for spec in group]
                await together(finished(rank_work.start(services, plan, spec, way)) for spec, way in ways)
        except BaseException as error:
            if not held.lost:
                await finished(clean_nodes(services, plan))
            if isinstance(error, CommandFailed):
                await report_changes(services, plan, outcome.cluster_state)
            raise


async def _keep(services: Services, outcome: Outcome) -> None:
    """Has the weights kept. A relaunch reads them from files where that fails: to serve again matters more."""
    try:
        await keep_weights(services, outcome.plan, partial(_way, services, outcome))
    except (NotReady, CommandFailed) as error:
        if services.program:
            raise
        services.notice(f"{error.message}; the ranks read their files", warning=True)


def _way(services: Services, outcome: Outcome, node: str) -> rank_work.Way:
    """Starts with unlimited memlock, unless the daemon is known not to allow it (check DOCK004 reports that)."""
    found, docker = outcome.cluster_state, outcome.cluster_state.facts[node].docker
    state = resolved_paths(services.cluster.node(node), found.facts[node]).state
    memlock = isinstance(docker, Unknown) or docker.can_raise_memlock is not False
    return rank_work.Way(state, found.images.get(node, ("", 0))[0], memlock)


async def _until_ready(services: Services, outcome: Outcome, ours: bool = True, quiet: bool = False) -> None:
    try:
        answer, watch = await until_ready(services, outcome.plan, outcome.cluster_state.facts, ours)
    except asyncio.CancelledError:
        if not quiet:
            _interrupted(services, outcome.plan, running=True)
            await finished(LoadGuard(services, outcome.plan).leave())
        raise
    except NotReady:
        await report_changes(services, outcome.plan, outcome.cluster_state)
        raise
    await remember(services, outcome.plan, outcome.cluster_state)
    _answered(outcome, answer)
    await _judged(services, outcome)
    await _parsed(services, outcome)
    judged = outcome.plan.recipe.serving.coherence  # else what is garbled is a warning, and no more
    outcome.done, outcome.facts = "garbled" if judged and outcome.garbled else "ready", watch.facts
    outcome.steps += watch.steps()
    outcome.claims = watch.claims
    save_figures(services, outcome.plan, outcome.cluster_state, watch, timed=ours)


def _answered(outcome: Outcome, answer: Answer) -> None:
    """Judged as the supervisor judges later ones."""
    outcome.answer = answer
    if why := babble(answer.text):
        found = GARBAGE.on(outcome.plan.deployment, f"{why}: {answer.text[:80]!r}")
        outcome.plan = replace(outcome.plan, findings=(*outcome.plan.findings, found))


async def _judged(services: Services, outcome: Outcome) -> None:
    """Easy questions with known answers, unless the first answer was garbage already."""
    plan, answer = outcome.plan, outcome.answer
    simulated = plan.cluster.simulated or plan.recipe.model.simulated or bool(answer and answer.simulated)
    if outcome.garbled or not wants_coherence(plan.recipe, simulated):
        return
    key = services.secrets.get(plan.recipe.serving.api_key_env)
    address = "127.0.0.1" if plan.bind == "0.0.0.0" else plan.bind
    with _step(services, outcome, "coherence"):
        async with services.hosts[plan.head].tunnel(address, plan.port) as url:
            judged, _ = await judged_answers(services.endpoint, url, plan.served_name, key)
    if judged is None:
        services.notice("its answers were not judged: not all of three easy questions were answered", warning=True)
    elif judged.coherence is Coherence.UNKNOWN:
        services.notice(f"its answers are language as far as can be seen, but {judged.why}", warning=True)
    elif judged.coherence is Coherence.GARBLED:
        outcome.plan = replace(plan, findings=(*plan.findings, GARBAGE.on(plan.deployment, judged.why)))


async def _parsed(services: Services, outcome: Outcome) -> None:
    """The recipe's parsers, where it has any and the answer is language."""
    parsers = outcome.plan.recipe.parsers
    if not (parsers.tool or parsers.reasoning) or outcome.garbled:
        return
    from sparkwright.app.bench.parsers import parser_findings  # probes: only for recipes with parsers

    with _step(services, outcome, "parsers"):
        found = await parser_findings(services, outcome.plan)
    outcome.plan = replace(outcome.plan, findings=(*outcome.plan.findings, *found))


@contextmanager
def _step(services: Services, outcome: Outcome, name: str, quiet: bool = False) -> Iterator[None]:
    began = services.clock.monotonic()
    if not quiet:
        services.sink.report(StepStarted(name))
    yield
    outcome.steps.append((name, services.clock.monotonic() - began))
    if not quiet:
        services.sink.report(StepDone(name, outcome.steps[-1][1]))
