"""The recipe was written from sources and has not been served by us.

Detects: the recipe's state is `documented`.
Why: flags and figures are somebody else's; a first start may show what they left out.
Evidence: the recipe's state_reason and references.
Remedy: none needed; when it has answered, its state may be set to `ready`.
References: recipes/reference.yaml, state.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import RecipeState
from sparkwright.rules.rule import Context

CODE = "REC002"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the recipe is documented only"


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    if recipe and recipe.state is RecipeState.DOCUMENTED:
        yield Finding(
            CODE,
            SEVERITY,
            recipe.name,
            "written from sources, not served by us",
            recipe.state_reason or (", ".join(recipe.references[:2]) or "no references"),
            "its flags and figures are as published, or as you wrote them",
            "when it has served, set state: ready in the recipe",
        )
