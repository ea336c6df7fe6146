"""Several recipes planned on one cluster: `plan A B`."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.app.launch import Outcome, prepare
from sparkwright.app.plan import api_key
from sparkwright.app.world import Wish, World
from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Planned:
    """trouble: why there is no plan, '' where there is one."""

    recipe: Recipe
    outcome: Outcome | None = None
    trouble: str = ""


async def planned(world: World, recipes: Sequence[Recipe]) -> list[Planned]:
    """One after the other: the nodes are asked again for each. What one cluster cannot do does not hide the others."""
    return [await _planned(world, recipe) for recipe in recipes]


async def _planned(world: World, recipe: Recipe) -> Planned:
    try:
        wish = Wish(recipe, recipe.deployment, "", api_key(world, recipe), supervised=True)
        return Planned(recipe, await prepare(world, wish))
    except UsageError as error:
        return Planned(recipe, trouble=error.message)
