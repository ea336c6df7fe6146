"""What the three rules over the compatibility table have in common."""

from collections.abc import Iterator

from sparkwright.compat.combination import Combination, combination
from sparkwright.compat.schema import Row
from sparkwright.compat.table import known_of
from sparkwright.domain.check import Context
from sparkwright.domain.recipe import RecipeState


def rows_with(context: Context, verdict: str) -> Iterator[tuple[Combination, Row]]:
    """The rows of that verdict that the recipe meets; none for a refused recipe (REC001)."""
    asked = combination(context)
    if asked and asked.recipe.state is not RecipeState.REFUSED:
        yield from ((asked, row) for row in known_of(asked) if row.verdict == verdict)


def named(asked: Combination) -> str:
    """`sglang 0.5.12 with DeepseekV4ForCausalLM (fp8, mxfp4) on sm_121`."""
    formats = f" ({', '.join(sorted(asked.formats))})" if asked.formats else ""
    return f"{asked.engine} {asked.version} with {asked.architecture or asked.model}{formats} on {asked.chip}"


def cited(row: Row) -> str:
    return f"{row.source}, {row.date}"


def row_text(row: Row) -> str:
    """The reason, the other side where there is one, and who reports it."""
    other = f"; other side: {row.otherwise}" if row.otherwise else ""
    return f"{row.reason}{other} [{cited(row)}]"
