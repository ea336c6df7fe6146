"""The recipe is known not to work.

Detects: the recipe's state is `refused`.
Why: somebody has spent the hours already; the reason says which combination fails and what works instead.
Evidence: the recipe's state_reason.
Remedy: the alternative that the reason names, or another recipe.
References: design/product.md, the recipes that the seeds describe.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import RecipeState
from sparkwright.rules.rule import Context

CODE = "REC001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the recipe is refused: known not to work"


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    if recipe and recipe.state is RecipeState.REFUSED:
        yield Finding(
            CODE,
            SEVERITY,
            recipe.name,
            "this recipe is known not to work",
            recipe.state_reason or f"state: {recipe.state}",
            "it is kept for its reason, so that nobody tries it again",
            "sparkwright recipes list   # shows those that are ready",
        )
