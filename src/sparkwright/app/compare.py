"""Several recipes planned on one cluster: `plan A B`."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.app.prepare import Outcome, prepare
from sparkwright.app.services import LaunchRequest, Services, api_key
from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Planned:
    """trouble: why there is no plan, '' where there is one."""

    recipe: Recipe
    outcome: Outcome | None = None
    trouble: str = ""


async def planned(services: Services, recipes: Sequence[Recipe]) -> list[Planned]:
    """One after the other: the nodes are asked again for each. What one cluster cannot do does not hide the others."""
    return [await _planned(services, recipe) for recipe in recipes]


async def _planned(services: Services, recipe: Recipe) -> Planned:
    try:
        request = LaunchRequest(recipe, recipe.deployment, "", api_key(services, recipe), supervised=True)
        return Planned(recipe, await prepare(services, request))
    except UsageError as error:
        return Planned(recipe, trouble=error.message)
