"""What rules ask of a context again and again. Everything here takes a context that may lack anything."""

from collections.abc import Iterator
from typing import TypeVar

from sparkwright.domain.cluster import Node
from sparkwright.domain.facts import Docker, NodeFacts, RankStatus, Unknown
from sparkwright.domain.finding import Severity
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.rules.rule import Context

T = TypeVar("T")


def known(value: T | Unknown) -> T | None:
    return None if isinstance(value, Unknown) else value


def node_of(context: Context, name: str) -> Node | None:
    return next((node for node in context.cluster.nodes if node.name == name), None)


def simulated(context: Context) -> bool:
    """Whether nothing real is served: the twin as engine, a simulated model, or the embedded cluster."""
    return context.cluster.simulated or (context.recipe is not None and played(context.recipe))


def played(recipe: Recipe) -> bool:
    """Whether the recipe needs no weights. A real engine on the embedded cluster still reads real files."""
    return recipe.model.simulated or recipe.engine.name == "twin"


def specs_on(context: Context, node: str) -> tuple[RankSpec, ...]:
    return tuple(spec for spec in context.specs if spec.node == node)


def running(facts: NodeFacts) -> tuple[RankStatus, ...] | None:
    """Our ranks that run on the node; None when that is not known."""
    ranks = known(facts.ranks)
    return None if ranks is None else tuple(rank for rank in ranks if rank.running)


def gpu_may_be_used(context: Context, node: str) -> bool:
    """False for simulated runs, and when the plan is made and no rank on the node takes the GPU."""
    planned = bool(context.specs)
    return not simulated(context) and (not planned or any(spec.gpu for spec in specs_on(context, node)))


def not_gb10(facts: NodeFacts) -> bool:
    """The node shows a GPU and it is another one: what is known of GB10 drivers does not hold there."""
    return any("GB10" not in gpu.name for gpu in known(facts.gpus) or ())


def dockers(context: Context) -> Iterator[tuple[NodeFacts, Docker]]:
    """Nodes with what is known of their Docker, unless the recipe runs processes. Without a recipe all real nodes."""
    recipe = context.recipe
    wanted = recipe.engine.runtime is Runtime.DOCKER if recipe else not context.cluster.simulated
    for facts in context.facts.values() if wanted else ():
        docker = known(facts.docker)
        if docker is not None:
            yield facts, docker


def weigh(context: Context, severity: Severity) -> Severity:
    """The severity for a recipe that needs it; without a recipe it is only worth knowing."""
    return severity if context.recipe else Severity.INFO
