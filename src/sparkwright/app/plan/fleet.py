"""A plan for more nodes than one replica takes: groups of stock nodes that each serve the whole model."""

from collections.abc import Sequence

from sparkwright.app.plan.estimate import ComparisonRow, Estimated, EstimateRequest, compare, estimate
from sparkwright.app.services import Services
from sparkwright.domain.errors import UsageError
from sparkwright.domain.ledger import Fit
from sparkwright.domain.plan import Plan
from sparkwright.domain.units import counted
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Estimate, Speed

MOST_NODES_OF_ONE = 8
"""Beyond this a model is not split further here: TP 8 gave 1.3 times TP 4 as published, and nobody published more."""
_SIZES = (1, 2, 4, 8)


def _per_load(plan: Plan, alone: bool) -> Speed | None:
    """The first speed of one stream, or of as many as the recipe takes, if it is known."""
    for one in plan.speeds:
        rate = one.decode if alone else one.decode_all
        if (one.load.concurrency == 1) is alone and rate.known:
            return one
    return None


def _times(rate: Estimate, count: int) -> Estimate:
    return replace(rate, value=rate.value * count, low=rate.low * count, high=rate.high * count)


@dataclass(frozen=True, slots=True)
class GroupSize:
    """replicas of `size` nodes each. plan: of one of them."""

    replicas: int
    size: int
    plan: Plan

    @property
    def alone(self) -> Estimate | None:
        """Tokens a second of one user; None if not known."""
        found = _per_load(self.plan, alone=True)
        return found.decode if found else None

    @property
    def together(self) -> Estimate | None:
        """Tokens a second of all replicas under load, if requests are spread evenly; None if not known."""
        found = _per_load(self.plan, alone=False)
        return _times(found.decode_all, self.replicas) if found else None

    @property
    def streams(self) -> int:
        """Streams of all replicas with which `together` is meant; 0 if not known."""
        found = _per_load(self.plan, alone=False)
        return found.load.concurrency * self.replicas if found else 0


@dataclass(frozen=True, slots=True)
class FleetEstimate:
    """replicas of `size` nodes each; left: nodes in none. one: the plan of each of them.

    others: the same nodes in groups of each size that the model can be split over, the chosen one first.
    """

    replicas: int
    size: int
    left: int
    one: Estimated
    others: tuple[GroupSize, ...] = ()

    @property
    def _group(self) -> GroupSize:
        return GroupSize(self.replicas, self.size, self.one.plan)

    @property
    def sequences(self) -> float:
        """Requests of full length in all KV caches together; 0 if not known."""
        found = self.one.plan.verdict
        return found.sequences * self.replicas if found and found.kv else 0.0

    @property
    def together(self) -> Estimate | None:
        """Tokens a second of all replicas under load, as a GroupSize has them."""
        return self._group.together

    @property
    def streams(self) -> int:
        return self._group.streams


def wants_groups(nodes: int, tp: int, replicas: int) -> bool:
    """True if replicas are asked for, or more nodes than one replica takes."""
    return bool(replicas) or (nodes > MOST_NODES_OF_ONE and not tp)


async def estimate_fleet(
    services: Services, asked: EstimateRequest, replicas: int = 0, compared: bool = False
) -> FleetEstimate:
    """Plan as many replicas as the nodes hold, or so many: of the recipe's own size, or the smallest that fits.

    compared: plan the same nodes in groups of other sizes, too, unless a number of replicas is asked for.
    Raises UsageError if the nodes are too few.
    """
    sizes = (asked.recipe.nodes,) if asked.recipe and replicas else _sizes(asked)
    if replicas and asked.nodes:
        sizes = tuple(size for size in sizes if size * replicas <= asked.nodes)
        if not sizes:
            own = f" of {counted(asked.recipe.nodes, 'node')}" if asked.recipe else ""
            raise UsageError(f"too few for {counted(replicas, 'replica')}{own}: {counted(asked.nodes, 'node')}")
    size, one = sizes[0], await estimate(services, replace(asked, nodes=sizes[0]))
    for larger in sizes[1:]:
        if _is_large_enough(asked, one.plan):
            break
        size, one = larger, await estimate(services, replace(asked, nodes=larger))
    count = replicas or asked.nodes // size
    if not count:
        raise UsageError(f"too few for one replica of {counted(size, 'node')}: {counted(asked.nodes, 'node')}")
    others = await _other_sizes(services, asked, GroupSize(count, size, one.plan)) if compared and not replicas else ()
    return FleetEstimate(count, size, max(asked.nodes - count * size, 0), one, others)


def _sizes(asked: EstimateRequest) -> tuple[int, ...]:
    """Sizes of a group, the smallest first: a recipe's own, and larger ones if that does not fit."""
    least = asked.recipe.nodes if asked.recipe else 1
    return (least, *(size for size in _SIZES if size > least))


def _is_large_enough(asked: EstimateRequest, plan: Plan) -> bool:
    """True where a model surely fits; a recipe's own size is left only where it does not fit."""
    return plan.verdict is not None and (plan.verdict.fit is Fit.FITS or bool(asked.recipe and plan.verdict.fits))


async def _other_sizes(services: Services, asked: EstimateRequest, own: GroupSize) -> tuple[GroupSize, ...]:
    sizes = [size for size in _SIZES if size != own.size and size <= asked.nodes]
    rows = await compare(services, [replace(asked, nodes=size) for size in sizes])
    return (own, *(GroupSize(asked.nodes // row.nodes, row.nodes, row.plan) for row in rows if row.plan))


async def compare_fleets(services: Services, every: Sequence[EstimateRequest]) -> tuple[ComparisonRow, ...]:
    """Rows as `compare` gives them; more nodes than one replica takes are groups, as `estimate_fleet` chooses them."""
    asked = [_as_groups(one) for one in every]
    rows = iter(await compare(services, [one for groups in asked for one in groups]))
    found = [[next(rows) for _ in groups] for groups in asked]
    return tuple(_chosen(one, mine) for one, mine in zip(every, found, strict=True))


def _as_groups(asked: EstimateRequest) -> list[EstimateRequest]:
    """One request for each size of a group that may be chosen."""
    if not wants_groups(asked.nodes, asked.tp, 0):
        return [asked]
    return [replace(asked, nodes=size) for size in _sizes(asked) if size <= asked.nodes] or [asked]


def _chosen(asked: EstimateRequest, rows: Sequence[ComparisonRow]) -> ComparisonRow:
    fitting = (row for row in rows if row.plan and _is_large_enough(asked, row.plan))
    row = next(fitting, rows[-1])
    count = asked.nodes // row.nodes if wants_groups(asked.nodes, asked.tp, 0) else 1
    return replace(row, nodes=asked.nodes or row.nodes, replicas=count)
