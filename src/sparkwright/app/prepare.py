"""Facts of the nodes and the plan that is made of them: what `plan` prints, and what `up` starts from."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sparkwright.app.cluster_state import gather_state, nodes_for
from sparkwright.app.inventory import inventory
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.deployment import Answer
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import StepDone, StepStarted

if TYPE_CHECKING:
    from sparkwright.app.install_supervisor import InstallResult
    from sparkwright.app.standing import Old


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
    services.sink.tell(StepStarted("facts", f"asking {', '.join(n.name for n in nodes)}"))
    found = await gather_state(services, nodes, request.recipe)
    from sparkwright.app.calibrate import calibrated  # the planner is loaded after the nodes were asked
    from sparkwright.app.gate import unreal
    from sparkwright.app.plan import make_plan

    found = calibrated(services, request, found)
    plan = make_plan(services, request, found)
    if plan.verdict is not None and not plan.verdict.fits and not unreal(plan.cluster, plan.recipe):
        # Another checkpoint on these nodes' disks may be what fits; nobody else needs to know of them.
        found = replace(found, stored=(await inventory(services, nodes, [request.recipe])).stored)
        plan = make_plan(services, request, found)
    took = services.clock.monotonic() - began
    services.sink.tell(StepDone("facts", took))
    return Outcome(plan, found, steps=[("facts", took)])
