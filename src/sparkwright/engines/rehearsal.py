"""What a recipe would run, without a cluster: `recipes validate` checks the very words that `up` would.

Addresses, folders and devices are made up; nothing of them is ever shown or run.
"""

from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.review import review

_HOME = NodePaths("/home/user/models", "/home/user/hub", "/home/user/cache", "/home/user/state")


def rehearse(recipe: Recipe) -> tuple[Finding, ...]:
    """All that can be said of the recipe's engine, version, flags and variables. Raises RecipeError: unknown engine."""
    return review(recipe, _specs(recipe))


def _specs(recipe: Recipe) -> tuple[RankSpec, ...]:
    """The ranks on imagined nodes; none where the recipe cannot be rendered: `check` says why."""
    if recipe.parallelism.world_size != recipe.nodes:
        return ()
    nodes = tuple(f"node-{i + 1}" for i in range(recipe.nodes))
    fabric = {node: FabricChoice(f"192.0.2.{i + 1}", "eth0", ("mlx5_0",)) for i, node in enumerate(nodes)}
    context = RenderContext(
        dict.fromkeys(nodes, _HOME),
        dict.fromkeys(nodes, recipe.model.path or f"{_HOME.hub}/models--x/snapshots/y"),
        from_hub=not recipe.model.path,
        api_key=Secret("made-up") if recipe.serving.api_key_env else None,
        simulated=recipe.model.simulated,
        deployment="rehearsal",
        launch_key=Secret("made-up"),
    )
    try:
        return engine(recipe.engine.name).render(recipe, Placement(nodes, fabric), context)
    except SparkwrightError:
        return ()
