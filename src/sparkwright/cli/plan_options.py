"""The options of `sparkwright plan`, as its command line gives them."""

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.domain.values import dataclass, fields


@dataclass(frozen=True, slots=True)
class StockOptions:
    """The options of a plan that asks no node; each is empty where it was not given. nodes: counts. free: bytes."""

    nodes: tuple[int, ...] | None
    node_type: str
    free: int | None
    engine: str
    tp: int | None
    context: int | None
    kv_dtype: str

    @property
    def given(self) -> bool:
        """True if one of them was given: then no node is asked."""
        return any(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The command line of `plan`. goal: of --optimize. logs: of --from-log. form: of --emit. out: of --folder."""

    recipes: tuple[str, ...]
    profile: str
    name: str
    where: ClusterOptions
    force: str
    why: bool
    history: bool
    splits: bool
    commands: bool
    goal: str | None
    logs: tuple[str, ...]
    rank: int | None
    form: str | None
    replicas: int | None
    stock: StockOptions
    out: str
    as_json: bool
