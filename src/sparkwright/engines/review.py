"""All that the engine's knowledge says about a recipe and the command lines made of it, in one call."""

from collections.abc import Sequence

from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import engine
from sparkwright.engines.environment import check_rdma
from sparkwright.engines.flag_variables import check_variables
from sparkwright.engines.flags import check_flags


def review(recipe: Recipe, specs: Sequence[RankSpec]) -> tuple[Finding, ...]:
    """Findings ENG001-ENG039 without repetition, in the order found. Raises RecipeError for an unknown engine."""
    choice = recipe.engine
    found = [*engine(choice.name).check(recipe)]
    for spec in specs:
        found += check_flags(choice.name, choice.version, spec.engine_words, choice.extra_flags)
    found += check_rdma(specs)
    found += check_variables(choice.name, choice.version, recipe.env, choice.extra_env)
    return tuple(dict.fromkeys(found))
