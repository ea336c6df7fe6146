"""The figures of a start, kept for the next plan: what each rank logged, next to what was predicted."""

from collections.abc import Sequence

from sparkwright.app.plan.gate import conditions_of, pool_bytes
from sparkwright.app.serve.watch import StartWatch
from sparkwright.app.services import ClusterState, Services
from sparkwright.domain.calibration import Calibration
from sparkwright.domain.plan import Plan
from sparkwright.domain.plan_history import compared, promised, started
from sparkwright.domain.values import replace
from sparkwright.planner import calibrate


def save_figures(services: Services, plan: Plan, found: ClusterState, watch: StartWatch, timed: bool) -> None:
    """Saves the figures of each rank's log; timed: it was watched from its beginning, so its phases are known.

    What cannot be saved is reported: it is no reason to fail a start. The demo's nodes leave nothing behind.
    """
    if services.cluster.simulated or any(spec.keeper for spec in plan.specs):
        return  # the engine's own line counts no weights that it only maps
    phases = tuple((str(phase), at - watch.began) for phase, at in watch.phases.items()) if timed else ()
    for rank in watch.ranks:
        under = conditions_of(plan.recipe, found, rank.spec.rank, rank.spec.node)
        there, at = pool_bytes(found, rank.spec.node, plan.recipe, plan.deployment), services.clock.now()
        one = calibrate.measured(rank.figures.facts, under, at=at, source=plan.deployment, pool=there)
        one = replace(one, kept=_kept(watch, rank.spec.node, one.weights) if timed else None, phases=phases)
        trouble = "" if one.is_empty else services.calibrations.save(one)
        if trouble:
            services.notice(f"the engine's figures are not kept for the next plan: {trouble}", warning=True)
            return
        remember_prediction(services, plan, one, [other.spec.node for other in watch.ranks])


def remember_prediction(services: Services, plan: Plan, one: Calibration, nodes: Sequence[str]) -> None:
    """Keep what the plan said of the node next to what its engine logged; not where several ranks share it."""
    node = one.conditions.node
    ledger = next((found for found in plan.ledgers if found.node == node), None)
    if services.history is None or ledger is None or nodes.count(node) != 1:
        return
    first = plan.speeds[:1] if one.conditions.rank == 0 else ()
    more = [row for speed in first for row in (*started(speed.loading, one), *promised(speed.decode, one))]
    if (rows := (*compared(ledger, one), *more)) and (trouble := services.history.add(rows)):
        services.notice(f"the plan's predictions are not kept: {trouble}", warning=True)


def _kept(watch: StartWatch, node: str, weights: int | None) -> int | None:
    """Bytes that loading took besides the weights; None where it was not sampled, or several ranks share the node."""
    fell = watch.memory.fell(node)
    alone = [rank.spec.node for rank in watch.ranks].count(node) == 1
    return max(0, fell - weights) if alone and fell is not None and weights is not None else None
