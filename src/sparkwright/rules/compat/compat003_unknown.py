"""Nothing is known of this engine with this architecture on this chip.

Detects: an architecture that no row of the engine's table has, or a row `unknown` that the recipe meets.
Why: it may work; nobody who published has said so for a GB10.
Evidence: engine, architecture, and the row's source where there is one.
Remedy: none needed; keep the log of the first start.
References: src/sparkwright/rules/compat/data
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import RecipeState
from sparkwright.rules.compat.combination import combination
from sparkwright.rules.compat.table import unheard
from sparkwright.rules.compat.verdicts import named, rows_with, told
from sparkwright.rules.rule import Context

CODE = "COMPAT003"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "nothing is known of this engine with this architecture"
_ADVICE = "the first real request decides; keep the log of the first start"


def check(context: Context) -> Iterator[Finding]:
    for asked, row in rows_with(context, "unknown"):
        yield Finding(
            CODE,
            SEVERITY,
            asked.recipe.name,
            f"{named(asked)}: not known to work",
            told(row),
            remedy=row.alternative or _ADVICE,
        )
    one = combination(context)
    if one and one.recipe.state is not RecipeState.REFUSED and unheard(one):
        yield Finding(
            CODE,
            SEVERITY,
            one.recipe.name,
            f"nothing is known of {one.engine} with {one.architecture} on {one.chip}",
            "no row of the compatibility table has both",
            "it may work: nobody who published has said so for a GB10",
            _ADVICE,
        )
