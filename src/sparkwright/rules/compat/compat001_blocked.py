"""This combination of engine, version, model, quantization and chip is known not to work.

Detects: a row `blocked` of the compatibility table that the recipe meets.
Why: somebody has tried it, and it ended with the error that the row names, on this chip and with this version.
Evidence: the row's reason with its source and date.
Remedy: the row's alternative. Who built an engine of their own that has what is missing says so with a local version
(`0.5.12+mine`): then --force passes it. A refused recipe says its own reason (REC001), and this rule is silent.
References: the row's source; src/sparkwright/rules/compat/data; `sparkwright recipes show NAME` lists all rows
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.verdicts import named, rows_with, told
from sparkwright.rules.rule import Context

CODE = "COMPAT001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "engine, model and chip are known not to work together"


def check(context: Context) -> Iterator[Finding]:
    for asked, row in rows_with(context, "blocked"):
        severity = Severity.OVERRIDE if "+" in asked.version else SEVERITY
        yield Finding(
            CODE,
            severity,
            asked.recipe.name,
            f"{named(asked)} is known not to work",
            told(row),
            remedy=row.alternative,
        )
