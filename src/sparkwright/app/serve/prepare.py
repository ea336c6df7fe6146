"""Facts of the nodes and the plan that is made of them: what `plan` prints, and what `up` starts from."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sparkwright.app.cluster_state import gather_state, inventory, nodes_for
from sparkwright.app.services import ClusterState, LaunchRequest, Services, api_key
from sparkwright.checks.supervision import GARBAGE
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, field, replace

if TYPE_CHECKING:
    from sparkwright.app.serve.install_supervisor import InstallResult
    from sparkwright.app.serve.running import Old


PORT_TAKEN = "PORT001"
_PORTS = 32


@dataclass
class Outcome:
    """The result of `up`. done: 'planned', 'already serving', 'ready', 'garbled' or 'detached'.

    steps: (name, seconds) in order.

    fresh: its ranks were started by this call. armed: how it is supervised, if that was asked for. old: replaced.
    request: what was asked for, next to what serves already. called: the head's address as this machine reaches it.
    claims: as of StartWatch. without: why the engine starts without its cache on disk, '' where it has it.
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
    request: LaunchRequest | None = None
    called: str = ""
    claims: dict[str, float] = field(default_factory=dict)
    without: str = ""

    @property
    def garbled(self) -> bool:
        """It serves, and its answers are no language."""
        return any(one.code == GARBAGE.code for one in self.plan.findings)


async def prepare(services: Services, request: LaunchRequest) -> Outcome:
    """Facts and plan; changes nothing."""
    nodes, began = nodes_for(services, request.recipe), services.clock.monotonic()
    services.sink.report(StepStarted("facts", f"asking {', '.join(n.name for n in nodes)}"))
    found = await gather_state(services, nodes, _exact(request))
    if request.image and any(node.name not in found.images for node in nodes):
        found = await gather_state(services, nodes, request.recipe)
    from sparkwright.app.plan.gate import calibrated, unreal  # the planner is loaded after the nodes were asked
    from sparkwright.app.plan.planning import make_plan

    found = calibrated(services, request, found)
    if services.program and (others := neighbours(request, found)):
        from sparkwright.app.serve.running import serving  # of no use where the nodes are this deployment's alone

        request = replace(request, beside=(*request.beside, *await serving(services, others)))
    request, plan = next_to_others(services, request, found, make_plan)
    if plan.verdict is not None and not plan.verdict.fits and not unreal(plan.cluster, plan.recipe):
        # Another checkpoint on these nodes' disks may be what fits; nobody else needs to know of them.
        found = replace(found, stored=(await inventory(services, nodes, [request.recipe])).stored)
        plan = make_plan(services, request, found)
    took = services.clock.monotonic() - began
    services.sink.report(StepDone("facts", took))
    called = await services.hosts[plan.head].address()
    return Outcome(plan, found, steps=[("facts", took)], request=request, called=called)


def _exact(request: LaunchRequest) -> Recipe:
    """The recipe with the image that runs in place of its tag: engine, size and id are asked of that one."""
    recipe = request.recipe
    return replace(recipe, engine=replace(recipe.engine, image=request.image)) if request.image else recipe


def neighbours(request: LaunchRequest, found: ClusterState) -> set[str]:
    """Other deployments that run on its nodes, and stay."""
    ranks = [rank for facts in found.facts.values() for rank in known_or_none(facts.ranks) or ()]
    return {rank.deployment for rank in ranks if rank.running} - {request.deployment, request.replaces}


def next_to_others(
    services: Services, request: LaunchRequest, found: ClusterState, plan_of: Callable[..., Plan]
) -> tuple[LaunchRequest, Plan]:
    """Moves the request to the next free ports if another deployment has the recipe's own: clients see the
    gateway's."""
    ranks = [rank for facts in found.facts.values() for rank in known_or_none(facts.ranks) or ()]
    own = next((r for r in ranks if r.deployment == request.deployment and r.rank == 0 and r.running), None)
    first = own.port - request.recipe.serving.port if own and request.supervised else 0
    request = move_ports(request, first if 0 <= first < _PORTS else 0)
    plan = plan_of(services, request, found)
    others = {r.port for r in ranks if r.deployment not in (request.deployment, request.replaces)}

    def free(there: LaunchRequest, plan: Plan) -> bool:
        """True if no other deployment has the plan's ports, nor one that is stopped until a request comes."""
        return there.recipe.serving.port not in others and all(one.code != PORT_TAKEN for one in plan.findings)

    # A supervisor starts it where its clients and its gateway know it
    may_move = request.supervised and services.program and others
    for step in range(1, _PORTS) if may_move and not free(request, plan) else ():
        there = move_ports(request, step)
        other = plan_of(services, there, found)
        if free(there, other):
            return there, other
    return request, plan


def move_ports(request: LaunchRequest, by: int) -> LaunchRequest:
    serving = request.recipe.serving
    serving = replace(serving, port=serving.port + by, master_port=serving.master_port + by)
    return replace(request, recipe=replace(request.recipe, serving=serving)) if by else request


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
