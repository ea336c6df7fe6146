"""This combination is known to work badly, or sources contradict each other on it.

Detects: a row `degraded` of the compatibility table that the recipe meets.
Why: it starts and answers, but slowly, wrongly at times, or not for long; the row says which.
Evidence: the row's reason with its source and date. A row with another side (`otherwise`) shows both and only informs.
Remedy: the row's alternative.
References: the row's source; src/sparkwright/rules/compat/data
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.verdicts import named, rows_with, told
from sparkwright.rules.rule import Context

CODE = "COMPAT002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "engine, model and chip are known to work badly together"


def check(context: Context) -> Iterator[Finding]:
    for asked, row in rows_with(context, "degraded"):
        contradicted = bool(row.otherwise)
        yield Finding(
            CODE,
            Severity.INFO if contradicted else SEVERITY,
            asked.recipe.name,
            f"{named(asked)}: " + ("sources contradict each other" if contradicted else "known to work badly"),
            told(row),
            remedy=row.alternative,
        )
