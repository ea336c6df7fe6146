"""Checks of a recipe against the compatibility table."""

from collections.abc import Iterator

from sparkwright.checks.compat.combination import combination
from sparkwright.checks.compat.table import describe_combination, row_text, rows_with, unheard
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN
from sparkwright.domain.recipe import RecipeState


def blocked(context: Context) -> Iterator[Found]:
    for asked, row in rows_with(context, "blocked"):
        severity = OVERRIDE if "+" in asked.version else BLOCK
        title, subject = f"{describe_combination(asked)} is known not to work", asked.recipe.name
        yield Found(row_text(row), title=title, fix=row.alternative, severity=severity, subject=subject)


def degraded(context: Context) -> Iterator[Found]:
    for asked, row in rows_with(context, "degraded"):
        how, severity = ("sources contradict each other", INFO) if row.otherwise else ("known to work badly", WARN)
        title, subject = f"{describe_combination(asked)}: {how}", asked.recipe.name
        yield Found(row_text(row), title=title, fix=row.alternative, severity=severity, subject=subject)


_ADVICE = "the first real request decides; keep the log of the first start"


def unknown(context: Context) -> Iterator[Found]:
    for asked, row in rows_with(context, "unknown"):
        title, subject = f"{describe_combination(asked)}: not known to work", asked.recipe.name
        yield Found(row_text(row), title=title, cause="", fix=row.alternative or _ADVICE, subject=subject)
    one = combination(context)
    if one and one.recipe.state is not RecipeState.REFUSED and unheard(one):
        yield Found(
            "no row of the compatibility table has both",
            title=f"nothing is known of {one.engine} with {one.architecture} on {one.chip}",
            cause="it may work: nobody has published a result on a GB10",
            fix=_ADVICE,
            subject=one.recipe.name,
        )


CHECKS = explained(
    __file__,
    Check("COMPAT001", BLOCK, "combination known not to work", blocked),
    Check("COMPAT002", WARN, "combination known to work badly", degraded),
    Check("COMPAT003", INFO, "nothing known about this combination", unknown),
)
