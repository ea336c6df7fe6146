"""Facts of the nodes and the plan that is made of them: what `plan` prints, and what `up` starts from."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sparkwright.app.cluster_state import gather_state, inventory, nodes_for
from sparkwright.app.services import ClusterState, LaunchRequest, Services, api_key
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.recipe import Recipe

if TYPE_CHECKING:
    from sparkwright.app.install_supervisor import InstallResult
    from sparkwright.app.running import Old


@dataclass
class Outcome:
    """What `up` did. done: 'planned', 'already serving', 'ready' or 'detached'. steps: (name, seconds) in order.

    fresh: its ranks were started by this call. armed: how it is supervised, if that was asked for. old: replaced.
    """

    plan: Plan
    cluster_state: ClusterState
    done: str = "planned"
    answer: Answer | None = None
    steps: list[tuple[str, float]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    fresh: bool = False
    armed: "InstallResult | None" = None
    old: "Old | None" = None


async def prepare(services: Services, request: LaunchRequest) -> Outcome:
    """Facts and plan; changes nothing."""
    nodes, began = nodes_for(services, request.recipe), services.clock.monotonic()
    services.sink.report(StepStarted("facts", f"asking {', '.join(n.name for n in nodes)}"))
    found = await gather_state(services, nodes, request.recipe)
    from sparkwright.app.gate import calibrated, unreal  # the planner is loaded after the nodes were asked
    from sparkwright.app.plan import make_plan

    found = calibrated(services, request, found)
    plan = make_plan(services, request, found)
    if plan.verdict is not None and not plan.verdict.fits and not unreal(plan.cluster, plan.recipe):
        # Another checkpoint on these nodes' disks may be what fits; nobody else needs to know of them.
        found = replace(found, stored=(await inventory(services, nodes, [request.recipe])).stored)
        plan = make_plan(services, request, found)
    took = services.clock.monotonic() - began
    services.sink.report(StepDone("facts", took))
    return Outcome(plan, found, steps=[("facts", took)])


@dataclass(frozen=True, slots=True)
class Planned:
    """trouble: why there is no plan, '' where there is one."""

    recipe: Recipe
    outcome: Outcome | None = None
    trouble: str = ""


async def planned(services: Services, recipes: Sequence[Recipe]) -> list[Planned]:
    """One after the other: the nodes are asked again for each. What one cluster cannot do does not hide the others."""
    found = []
    for recipe in recipes:
        try:
            request = LaunchRequest(recipe, recipe.deployment, "", api_key(services, recipe), supervised=True)
            found.append(Planned(recipe, await prepare(services, request)))
        except UsageError as error:
            found.append(Planned(recipe, trouble=error.message))
    return found
