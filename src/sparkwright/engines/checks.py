"""What can be said about a recipe without any node: findings ENG010-ENG039."""

from collections.abc import Collection

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.environment import check_env
from sparkwright.engines.options import option_name


def check_distributed(recipe: Recipe, per_rank: Collection[str]) -> tuple[Finding, ...]:
    """For engines whose ranks share one command line: environment, per-rank flags, world size, image."""
    return (*check_env(recipe), *_per_rank_flags(recipe, per_rank), *_world(recipe), *_program(recipe))


def _per_rank_flags(recipe: Recipe, per_rank: Collection[str]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            "ENG013", Severity.BLOCK, f"flags.{name}", f"--{option_name(name)} is set per rank by sparkwright",
            evidence=f"{name}: {value}",
            cause="in a recipe it would be the same on every rank, or bypass who may reach the endpoint",
            remedy="use serving.port, serving.expose, serving.master_port or serving.api_key_env",
        )
        for name, value in recipe.flags.items() if option_name(name) in per_rank
    )  # fmt: skip


def _world(recipe: Recipe) -> tuple[Finding, ...]:
    """One GPU per node: the ranks must be as many as the nodes."""
    p = recipe.parallelism
    if p.world_size == recipe.nodes:
        return ()
    return (
        Finding(
            "ENG014", Severity.BLOCK, "parallelism", "ranks and nodes do not match",
            evidence=f"tp {p.tp} x pp {p.pp} x dp {p.dp} = {p.world_size} ranks on {recipe.nodes} nodes",
            cause="a GB10 node has one GPU, and a rank needs a GPU of its own",
            remedy=f"set nodes: {p.world_size}, or choose tp, pp and dp whose product is {recipe.nodes}",
        ),
    )  # fmt: skip


def _program(recipe: Recipe) -> tuple[Finding, ...]:
    engine = recipe.engine
    if engine.runtime is not Runtime.DOCKER or engine.image:
        return ()
    return (
        Finding(
            "ENG016", Severity.BLOCK, "engine.image", "runtime docker without an image",
            cause="there is nothing to run",
            remedy="set engine.image (best by digest), or engine.runtime: process with engine.venv",
        ),
    )  # fmt: skip
