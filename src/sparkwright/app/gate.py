"""The gate: whether a recipe fits in what is really free on its nodes, and what would make it fit."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.app.calibrate import calibrated
from sparkwright.app.cluster_state import gather_state, nodes_for
from sparkwright.app.published import completed
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import UsageError
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.verdict import Goal, Load, Optimum, Remedy, Speed, Verdict
from sparkwright.engines.catalog import traits
from sparkwright.engines.flag_data import flag_data
from sparkwright.engines.traits import Claim
from sparkwright.planner import limits
from sparkwright.planner.judge import Ground, RealJudge, verdict
from sparkwright.planner.knobs import Surroundings, context_of
from sparkwright.planner.ledger import memory_fraction, simulated
from sparkwright.planner.optimize import optimize
from sparkwright.planner.pool import actions
from sparkwright.planner.remedies import remedies
from sparkwright.planner.usable import other_checkpoints

PROMPT = 8192  # tokens of the prompt that speeds are told for: a coding agent's first request
BUSY = 4096  # tokens before each of many requests at once, and in its prompt


@dataclass(frozen=True, slots=True)
class Weighed:
    """ledgers: in the order of ranks. sought: whether remedies were: it is real, and
    known not to fit."""

    ledgers: tuple[MemoryLedger, ...]
    verdict: Verdict
    remedies: tuple[Remedy, ...]
    speeds: tuple[Speed, ...]
    sought: bool


def unreal(cluster: Cluster, recipe: Recipe) -> bool:
    """Nothing simulated is kept from starting for want of memory."""
    return cluster.simulated or simulated(recipe)


def weighed(services: Services, request: LaunchRequest, cluster_state: ClusterState, nodes: Sequence[Node]) -> Weighed:
    """What the ledgers of the nodes show, for the recipe as it is and for what could be changed."""
    judge = judge_of(request, cluster_state, nodes)
    counted = judge.ground.ledgers(request.recipe)
    found = verdict(counted)
    sought = not found.fits and found.known and not unreal(services.cluster, request.recipe)
    proposed = remedies(request.recipe, judge, surroundings(services, request, cluster_state, judge)) if sought else ()
    return Weighed(counted, found, proposed, speeds(request.recipe, judge, found), sought)


async def optimum(services: Services, request: LaunchRequest, goal: Goal) -> Optimum:
    """Asks the nodes and searches the limits. Raises UsageError where there is nothing to search."""
    if unreal(services.cluster, request.recipe):
        raise UsageError(f"{request.recipe.label}: simulated here, it takes no memory: there is nothing to optimize")
    nodes = nodes_for(services, request.recipe)
    found = calibrated(services, request, await gather_state(services, nodes, request.recipe))
    request = completed(request, found)
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
    return RealJudge(
        Ground(
            names,
            request.deployment,
            cluster_state.facts,
            cluster_state.checkpoints,
            cluster_state.calibrations,
            found,
        )
    )


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


def kv_dtypes(recipe: Recipe) -> tuple[str, ...]:
    """Types of KV cache that this version of the engine takes, as far as its data show."""
    data, _ = flag_data(recipe.engine.name, recipe.engine.version)
    option = data.options.get(traits(recipe).kv_option) if data else None
    return tuple(str(name) for name in option.allowed("")) if option else ()


def speeds(recipe: Recipe, judge: RealJudge, found: Verdict) -> tuple[Speed, ...]:
    """Of one stream after a short prompt and at full depth, and of as many as the limits and the KV pool let in."""
    depth = context_of(recipe, judge.ground.shape(recipe))
    held = found.kv.tokens // (2 * BUSY) if found.kv else 1
    loads = [Load(prompt=PROMPT)]
    loads += [Load(depth=depth)] if depth > 2 * PROMPT else []
    loads += (
        [Load(depth=BUSY, prompt=BUSY, concurrency=busy)] if (busy := min(limits.sequences(recipe), held)) > 1 else []
    )
    return tuple(speed for load in loads if (speed := judge.speed(recipe, load)) is not None)
