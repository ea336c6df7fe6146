"""The recipe is known not to work.

Detects: the recipe's state is `refused`.
Why: somebody has spent the hours already; the reason says which combination fails, `instead` what works in its place.
Evidence: the recipe's state_reason.
Remedy: the recipe named under `instead`, or another one that is ready. There is no way to force a refused recipe; who
knows better copies it (`sparkwright recipes show NAME` has all of it) and gives the copy another state.
References: https://al-engr.com/sglang-deepseek-spark-pivot.html, https://al-engr.com/minimax-sglang-debug.html
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
        remedy = f"sparkwright up {recipe.instead}" if recipe.instead else "sparkwright recipes list   # what is ready"
        yield Finding(
            CODE,
            SEVERITY,
            recipe.name,
            "this recipe is known not to work",
            recipe.state_reason or f"state: {recipe.state}",
            "it is kept for its reason, so that nobody tries it again",
            remedy,
        )
