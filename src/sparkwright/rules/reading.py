"""What rules ask of a context again and again. Everything here takes a context that may lack anything."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from sparkwright.domain.cluster import Node
from sparkwright.domain.facts import Docker, NodeFacts, RankStatus, Unknown
from sparkwright.domain.finding import Severity
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.rules.rule import Context

T = TypeVar("T")
GB10_PCI = "10de:2e12"


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


def idle(facts: NodeFacts) -> bool:
    """No rank of ours is known to run a real engine there; not known counts as busy."""
    ours = running(facts)
    return ours is not None and all(rank.simulated for rank in ours)


def offset(facts: NodeFacts) -> tuple[float, float] | None:
    """Between how many seconds the node's clock is ahead: it was read at some time between asking and the answer."""
    times = known(facts.times)
    now = known(times.now) if times else None
    return (now - facts.at, now - facts.asked) if now is not None and facts.asked else None


def gpu_may_be_used(context: Context, node: str) -> bool:
    """False for simulated runs, and when the plan is made and no rank on the node takes the GPU."""
    planned = bool(context.specs)
    return not simulated(context) and (not planned or any(spec.gpu for spec in specs_on(context, node)))


def other_gpu(facts: NodeFacts) -> bool:
    """The node shows a GPU and it is another one than a GB10."""
    return any("GB10" not in gpu.name for gpu in known(facts.gpus) or ())


def not_gb10(facts: NodeFacts) -> bool:
    """That, or it shows none and the processor is none of Arm's: what is known of GB10 drivers does not hold there."""
    identity = known(facts.identity)
    foreign = identity is not None and identity.arch not in ("", "aarch64")
    return other_gpu(facts) or (foreign and not is_gb10(facts))


def nodes(context: Context) -> Iterator[NodeFacts]:
    """Nodes that are machines of their own: a simulated cluster shows the settings of the machine that plays it."""
    yield from () if context.cluster.simulated else context.facts.values()


def gpu_nodes(context: Context) -> Iterator[NodeFacts]:
    """Nodes whose GPU may be used: what is wrong with a GPU stops no rank that does without."""
    yield from (facts for facts in nodes(context) if gpu_may_be_used(context, facts.node))


def gb10s(context: Context) -> Iterator[NodeFacts]:
    """Those of them whose GPU is a GB10 or is not known."""
    yield from (facts for facts in gpu_nodes(context) if not not_gb10(facts))


def is_gb10(facts: NodeFacts) -> bool:
    """nvidia-smi shows a GB10, or where it does not answer the PCI bus has one."""
    board = known(facts.board)
    functions = (known(board.nvidia) or {}) if board else {}
    return GB10_PCI in functions.values() or any("GB10" in gpu.name for gpu in known(facts.gpus) or ())


def sparks(context: Context) -> Iterator[NodeFacts]:
    """Nodes that are known to be GB10 machines. What others run and how they are set up is their owners' affair."""
    yield from (facts for facts in nodes(context) if is_gb10(facts))


def differing(context: Context, read: Callable[[NodeFacts], str | None]) -> str:
    """`spark-1 6.17, spark-2 6.14` where real nodes have not all the same; '' where they do. None: not known."""
    rows = [(facts.node, value) for facts in nodes(context) if (value := read(facts))]
    return ", ".join(f"{node} {value}" for node, value in rows) if len({value for _, value in rows}) > 1 else ""


def everywhere(context: Context) -> str:
    """The subject of a finding about several nodes."""
    return ", ".join(facts.node for facts in nodes(context))


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
