"""What the engines printed at earlier starts: read before a plan, saved after each start that ended well."""

from dataclasses import replace

from sparkwright.app.cluster_state import nodes_for
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.app.watch import RankWatch, Watch
from sparkwright.domain.calibration import Calibration, Conditions
from sparkwright.domain.errors import UsageError
from sparkwright.domain.facts import Driver, Unknown
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.engines.catalog import traits
from sparkwright.engines.traits import Claim
from sparkwright.planner import calibrate
from sparkwright.planner.ledger import simulated
from sparkwright.planner.parallelism import Checkpoints, known_shape
from sparkwright.planner.pool import pool
from sparkwright.planner.weights import rank_weights

_OTHER_MODEL = 1.3  # beyond the range of the count: no way of counting was this far off


def calibrated(services: Services, request: LaunchRequest, found: ClusterState) -> ClusterState:
    """The survey with what is known of earlier starts of the same, node by node; logs given by hand come first.

    Raises UsageError for a log by hand whose weights are not this recipe's.
    """
    known = {}
    for rank, node in enumerate(nodes_for(services, request.recipe)):
        one = _known(services, request, _conditions(services, request.recipe, found, rank, node.name))
        if one and request.measured:
            _same_model(one, request.recipe, found.checkpoints)
        if one:
            known[node.name] = calibrate.onto(
                one, request.recipe, _pool(found, node.name, request.recipe, request.deployment)
            )
    return replace(found, calibrations=known)


def _known(services: Services, request: LaunchRequest, wanted: Conditions) -> Calibration | None:
    recipe = request.recipe
    alike = recipe.parallelism.pp == 1 and not traits(recipe).by_layer
    return calibrate.choose(request.measured or services.calibrations.like(wanted), wanted, alike)


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


def save_figures(services: Services, plan: Plan, found: ClusterState, watch: Watch, timed: bool) -> None:
    """Saves the figures of each rank's log; timed: it was watched from its beginning, so its phases are known.

    What cannot be saved is reported: it is no reason to fail a start. The demo's nodes leave nothing behind.
    """
    if services.cluster.simulated:
        return
    phases = tuple((str(phase), at - watch.began) for phase, at in watch.phases.items()) if timed else ()
    said = (_of_rank(services, plan, found, rank) for rank in watch.ranks)
    for one in said:
        trouble = "" if one.is_empty else services.calibrations.save(replace(one, phases=phases))
        if trouble:
            services.sink.tell(Notice(f"the engine's figures are not kept for the next plan: {trouble}", warning=True))
            return


def _of_rank(services: Services, plan: Plan, found: ClusterState, rank: RankWatch) -> Calibration:
    node = rank.spec.node
    under = _conditions(services, plan.recipe, found, rank.spec.rank, node)
    there = _pool(found, node, plan.recipe, plan.deployment)
    return calibrate.measured(rank.figures.facts, under, at=services.clock.now(), source=plan.deployment, pool=there)


def _conditions(services: Services, recipe: Recipe, found: ClusterState, rank: int, node: str) -> Conditions:
    driver = found.facts[node].driver
    version = driver.version if isinstance(driver, Driver) else ""
    return calibrate.conditions(
        recipe,
        simulated(recipe),
        rank=rank,
        node=node,
        image=found.images.get(node, ("", 0))[0],
        driver=version if isinstance(version, str) else "",
    )


def _pool(found: ClusterState, node: str, recipe: Recipe, deployment: str) -> int:
    """What the engine's memory fraction is of: all there is, or what is free when it starts. 0: not known."""
    there = pool(found.facts[node], deployment, 1)
    if isinstance(there, Unknown):
        return 0
    return there.free if traits(recipe).claim in (Claim.FREE, Claim.REST) else there.total.bytes
