"""What runs already of the deployment that `up` is asked for."""

from collections.abc import Sequence

from sparkwright.app.plan import same_ranks
from sparkwright.app.stop import old_ranks
from sparkwright.app.world import Survey
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.plan import Plan


def is_up(plan: Plan, found: Sequence[RankStatus]) -> bool:
    """Whether exactly the plan's ranks run, on its nodes."""
    alive = _alive(found)
    placed = [r.node for r in alive] == list(plan.placement.nodes)
    return bool(plan.specs) and placed and same_ranks(plan, [r.spec_hash for r in alive])


def standing(plan: Plan, survey: Survey) -> str:
    """What `up` would do to what runs of it already; empty when nothing does."""
    found = old_ranks(plan, survey)
    if is_up(plan, found):
        return f"{plan.deployment} runs already, as planned here: `up` would start nothing"
    if count := len(_alive(found)):
        return f"{plan.deployment} runs, but not as planned here: `up` would stop its {count} rank(s) and start it anew"
    return ""


def _alive(found: Sequence[RankStatus]) -> list[RankStatus]:
    return sorted((r for r in found if r.running), key=lambda r: r.rank)
