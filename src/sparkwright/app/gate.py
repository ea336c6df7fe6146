"""The gate: whether a recipe fits in what is really free on its nodes, and what would make it fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkwright.app.calibrate import calibrated
from sparkwright.app.cluster_state import gather_state, nodes_for
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import UsageError
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.verdict import Goal, Optimum, Remedy, Speed, Verdict
from sparkwright.engines.catalog import traits
from sparkwright.engines.traits import Claim
from sparkwright.planner.judge import Ground, RealJudge, speeds, verdict
from sparkwright.planner.knobs import Surroundings, kv_dtypes
from sparkwright.planner.ledger import memory_fraction, simulated
from sparkwright.planner.optimize import optimize
from sparkwright.planner.pool import actions
from sparkwright.planner.remedies import remedies
from sparkwright.planner.usable import other_checkpoints, with_published


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
    request = replace(request, recipe=with_published(request.recipe, found.published))
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
