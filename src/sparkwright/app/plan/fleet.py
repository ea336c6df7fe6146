"""A plan for more nodes than one replica takes: groups of stock nodes that each serve the whole model."""

from sparkwright.app.plan.estimate import Estimated, EstimateRequest, estimate
from sparkwright.app.services import Services
from sparkwright.domain.errors import UsageError
from sparkwright.domain.ledger import Fit
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Estimate

MOST_NODES_OF_ONE = 8
"""Beyond this a model is not split further here: TP 8 gave 1.3 times TP 4 as published, and nobody published more."""
_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class FleetEstimate:
    """replicas of `size` nodes each; left: nodes in none. one: the plan of each of them."""

    replicas: int
    size: int
    left: int
    one: Estimated

    @property
    def sequences(self) -> float:
        """Requests of full length in all KV caches together; 0 if not known."""
        found = self.one.plan.verdict
        return found.sequences * self.replicas if found and found.kv else 0.0

    @property
    def together(self) -> Estimate | None:
        """Tokens a second of all replicas under load, if requests are spread evenly; None if not known."""
        known = [one for one in self.one.plan.speeds if one.load.concurrency > 1 and one.decode_all.known]
        if not known:
            return None
        rate, n = known[0].decode_all, self.replicas
        return replace(rate, value=rate.value * n, low=rate.low * n, high=rate.high * n)


def wants_groups(nodes: int, tp: int, replicas: int) -> bool:
    """True if replicas are asked for, or more nodes than one replica takes."""
    return bool(replicas) or (nodes > MOST_NODES_OF_ONE and not tp)


async def estimate_fleet(services: Services, asked: EstimateRequest, replicas: int = 0) -> FleetEstimate:
    """Plan as many replicas as the nodes hold, or so many: of the recipe's own size, or the smallest that fits.

    Raises UsageError if the nodes are too few.
    """
    sizes: tuple[int, ...] = (asked.recipe.nodes,) if asked.recipe else _SIZES
    if replicas and asked.nodes:
        sizes = tuple(size for size in sizes if size * replicas <= asked.nodes)
        if not sizes:
            own = f" of {asked.recipe.nodes} nodes" if asked.recipe else ""
            raise UsageError(f"{asked.nodes} nodes are too few for {replicas} replicas{own}")
    size, one = sizes[0], await estimate(services, replace(asked, nodes=sizes[0]))
    for larger in sizes[1:]:
        if one.plan.verdict and one.plan.verdict.fit is Fit.FITS:
            break
        size, one = larger, await estimate(services, replace(asked, nodes=larger))
    count = replicas or asked.nodes // size
    if not count:
        raise UsageError(f"{asked.nodes} nodes are too few for one replica of {size} nodes")
    return FleetEstimate(count, size, max(asked.nodes - count * size, 0), one)
