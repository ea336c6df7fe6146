"""The memory verdict of a recipe on its nodes: does it fit, what would make it fit, and figures of earlier starts."""

from collections.abc import Sequence

from sparkwright.app.cluster_state import gather_state, nodes_for
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.calibration import Calibration, Conditions
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import UsageError
from sparkwright.domain.facts import Driver, Unknown
from sparkwright.domain.ledger import Fit, MemoryLedger
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Goal, LoaderCost, Optimum, Remedy, Speed, Verdict
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import option_name
from sparkwright.engines.tables import DEFAULT, LOAD_FORMAT
from sparkwright.engines.traits import Claim
from sparkwright.planner import calibrate
from sparkwright.planner.judge import Ground, RealJudge, speeds, verdict
from sparkwright.planner.knobs import Surroundings, kv_dtypes, tables_elsewhere
from sparkwright.planner.ledger import memory_fraction, simulated
from sparkwright.planner.optimize import optimize
from sparkwright.planner.parallelism import Checkpoints, known_shape
from sparkwright.planner.pool import actions, memory_pool
from sparkwright.planner.remedies import Refusal, remedies
from sparkwright.planner.speed import loader_name
from sparkwright.planner.usable import other_checkpoints, with_published
from sparkwright.planner.weights import rank_weights

_OTHER_MODEL = 1.3  # beyond the range of the count: no way of counting was this far off


def calibrated(services: Services, request: LaunchRequest, found: ClusterState) -> ClusterState:
    """The survey with what is known of earlier starts of the same, node by node; logs given by hand come first.

    Raises UsageError for a log by hand whose weights are not this recipe's.
    """
    known, recipe = {}, request.recipe
    alike = recipe.parallelism.pp == 1 and not traits(recipe).by_layer
    for rank, node in enumerate(nodes_for(services, recipe)):
        wanted = conditions_of(recipe, found, rank, node.name)
        one = calibrate.choose(request.measured or services.calibrations.like(wanted), wanted, alike)
        if one and request.measured:
            _same_model(one, recipe, found.checkpoints)
        if one:
            known[node.name] = calibrate.calibrate_for_pool(
                one, recipe, pool_bytes(found, node.name, recipe, request.deployment)
            )
    return replace(found, calibrations=known)


def _same_model(given: Calibration, recipe: Recipe, checkpoints: Checkpoints) -> None:
    """A log may call the model by any path, so its name proves nothing: its weights do."""
    known = known_shape(recipe, checkpoints)
    line = rank_weights(recipe, known.shape, known.checkpoint)
    if given.weights is None or simulated(recipe) or not line.bytes:
        return
    low, high = line.low or line.bytes, line.high or line.bytes
    if not low / _OTHER_MODEL <= given.weights <= high * _OTHER_MODEL:
        raise UsageError(
            f"{given.source}: is of another model or split: {gib(given.weights)} of weights a rank, where "
            f"{recipe.label} has about {gib(line.bytes)}",
            "give a log of this model with this split",
        )


def conditions_of(recipe: Recipe, found: ClusterState, rank: int, node: str) -> Conditions:
    """The conditions under which a rank's figures count again."""
    driver, image = found.facts[node].driver, found.images.get(node, ("", 0))[0]
    version = driver.version if isinstance(driver, Driver) and isinstance(driver.version, str) else ""
    return calibrate.conditions(recipe, simulated(recipe), rank=rank, node=node, image=image, driver=version)


def pool_bytes(found: ClusterState, node: str, recipe: Recipe, deployment: str) -> int:
    """Bytes that the engine's memory fraction refers to: all memory, or the memory free at its start. 0: unknown."""
    there = memory_pool(found.facts[node], deployment, 1)
    if isinstance(there, Unknown):
        return 0
    return there.free if traits(recipe).claim in (Claim.FREE, Claim.REST) else there.total.bytes


@dataclass(frozen=True, slots=True)
class Weighed:
    """ledgers: in the order of ranks. sought: whether remedies were: it is real, and does not surely fit.

    obstacles: checks that refused what would have fitted. loaders: what each costs, the recipe's own first. elsewhere:
    the engines that leave tables on disk, where the recipe's own cannot.
    """

    ledgers: tuple[MemoryLedger, ...]
    verdict: Verdict
    remedies: tuple[Remedy, ...]
    speeds: tuple[Speed, ...]
    sought: bool
    obstacles: tuple[str, ...] = ()
    loaders: tuple[LoaderCost, ...] = ()
    elsewhere: str = ""


def unreal(cluster: Cluster, recipe: Recipe) -> bool:
    """Nothing simulated is kept from starting for want of memory."""
    return cluster.simulated or simulated(recipe)


def weighed(
    services: Services,
    request: LaunchRequest,
    cluster_state: ClusterState,
    nodes: Sequence[Node],
    refusal: Refusal | None,
) -> Weighed:
    """Judge the recipe by the nodes' ledgers and search what could be changed; without `refusal` search nothing."""
    judge = judge_of(request, cluster_state, nodes)
    counted = judge.ground.ledgers(request.recipe)
    found = verdict(counted, request.recipe.parallelism.dp)
    sought = found.fit is not Fit.FITS and found.known and not unreal(services.cluster, request.recipe)
    if refusal is None:
        return Weighed(counted, found, (), (), False)
    world = surroundings(services, request, cluster_state, judge)
    proposed, obstacles = remedies(request.recipe, judge, world, refusal) if sought else ((), ())
    costs = tuple(_learned(services, request.recipe, cluster_state, cost) for cost in judge.loaders(request.recipe))
    elsewhere = tables_elsewhere(request.recipe, judge.ground.shape(request.recipe)) if sought else ""
    return Weighed(counted, found, proposed, speeds(request.recipe, judge, found), sought, obstacles, costs, elsewhere)


def _learned(services: Services, recipe: Recipe, found: ClusterState, cost: LoaderCost) -> LoaderCost:
    """The loader's cost with the figures that an earlier start, equal but for the loader, measured on the head."""
    head = nodes_for(services, recipe)[0].name
    flags = {name: value for name, value in recipe.flags.items() if option_name(name) != LOAD_FORMAT}
    flags |= {} if cost.name == DEFAULT else {LOAD_FORMAT: cost.name}
    made = recipe if loader_name(recipe) == cost.name else replace(recipe, flags=flags)
    wanted = conditions_of(made, found, 0, head)
    one = calibrate.choose(services.calibrations.like(wanted), wanted)
    took = calibrate.load_seconds(one) if one else None
    return replace(cost, took=took, kept=one.kept, source=calibrate.source_of(one)) if one and took else cost


async def optimum(services: Services, request: LaunchRequest, goal: Goal) -> Optimum:
    """Asks the nodes and searches the limits. Raises UsageError where there is nothing to search."""
    if unreal(services.cluster, request.recipe):
        raise UsageError(f"{request.recipe.label}: simulated here, it takes no memory: there is nothing to optimize")
    nodes = nodes_for(services, request.recipe)
    found = calibrated(services, request, await gather_state(services, nodes, request.recipe))
    request = replace(request, recipe=with_published(request.recipe, found.published, found.draft))
    judge = judge_of(request, found, nodes)
    return optimize(request.recipe, judge, surroundings(services, request, found, judge), goal)


def judge_of(request: LaunchRequest, cluster_state: ClusterState, nodes: Sequence[Node]) -> RealJudge:
    names = tuple(node.name for node in nodes)
    # Checkpoints on any disk by what a recipe calls them, without the one that this recipe means
    found: dict[tuple[str, str], Checkpoint] = {}
    for stored in cluster_state.stored:
        one = stored.checkpoint
        found |= {key: one for key in ((stored.id, ""), (stored.id, one.revision), (one.path, "")) if key[0]}
    found.pop((request.recipe.model.label, request.recipe.model.revision), None)
    state = cluster_state
    return RealJudge(Ground(names, request.deployment, state.facts, state.checkpoints, state.calibrations, found))


def surroundings(
    services: Services, request: LaunchRequest, cluster_state: ClusterState, judge: RealJudge
) -> Surroundings:
    recipe, facts = request.recipe, [cluster_state.facts[name] for name in judge.ground.nodes]
    return Surroundings(
        nodes=len(services.cluster.nodes),
        shape=judge.ground.shape(recipe),
        kv_dtypes=kv_dtypes(recipe),
        fraction=0.0 if traits(recipe).claim is Claim.NONE else memory_fraction(recipe),
        actions=actions(facts, request.deployment),
        checkpoints=other_checkpoints(recipe, cluster_state.stored),
    )
