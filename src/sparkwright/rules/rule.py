"""The rule protocol: a rule is a module of one file; the context that it looks at may lack anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkwright.domain.advice import Advice
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.gateway_facts import GatewayFacts
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.measured import Measured
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.published import Published
from sparkwright.domain.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Context:
    """What is known when rules are asked. facts and checkpoints: by node name, only of nodes that answered.

    images: node -> bytes of the image as the daemon knows it, 0 when it is absent; no entry: not asked. published: what
    the hub says of a model that no node has, where the plan was made with it.
    measured: by `check --deep`. gateway: where a gateway is made ready, nowhere else. beside: other deployments that
    may run on the same nodes.
    `check` without a recipe has only cluster and facts; `plan` and `up` have everything.
    """

    cluster: Cluster
    facts: Mapping[str, NodeFacts] = field(default_factory=dict)
    recipe: Recipe | None = None
    deployment: str = ""
    specs: tuple[RankSpec, ...] = ()
    ledgers: tuple[MemoryLedger, ...] = ()
    checkpoints: Mapping[str, Checkpoint | Unknown] = field(default_factory=dict)
    images: Mapping[str, int] = field(default_factory=dict)
    advice: Advice | None = None
    published: Published | None = None
    measured: Measured | None = None
    gateway: GatewayFacts | None = None
    beside: tuple[str, ...] = ()

    def facts_of(self, spec: RankSpec) -> NodeFacts | None:
        return self.facts.get(spec.node)


class Rule(Protocol):
    """A rule over facts, recipe and plan.

    A module with these names; its docstring has the headings Detects, Why, Evidence, Remedy, References.
    """

    @property
    def CODE(self) -> str: ...

    @property
    def STATUS(self) -> str: ...

    @property
    def SEVERITY(self) -> Severity: ...

    @property
    def TITLE(self) -> str: ...

    def check(self, context: Context) -> Iterable[Finding]:
        """Findings about this context; none when what it needs is missing or unknown. Never raises."""
        ...
