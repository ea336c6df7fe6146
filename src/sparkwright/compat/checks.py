"""Checks of a recipe against the compatibility table."""

from collections.abc import Iterator

from sparkwright.compat.combination import combination
from sparkwright.compat.table import unheard
from sparkwright.compat.verdicts import named, rows_with, told
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN
from sparkwright.domain.recipe import RecipeState


def blocked(context: Context) -> Iterator[Found]:
    for asked, row in rows_with(context, "blocked"):
        severity = OVERRIDE if "+" in asked.version else BLOCK
        yield Found(
            told(row),
            title=f"{named(asked)} is known not to work",
            fix=row.alternative,
            severity=severity,
            subject=asked.recipe.name,
        )


def degraded(context: Context) -> Iterator[Found]:
    for asked, row in rows_with(context, "degraded"):
        contradicted = bool(row.otherwise)
        yield Found(
            told(row),
            title=f"{named(asked)}: " + ("sources contradict each other" if contradicted else "known to work badly"),
            fix=row.alternative,
            severity=INFO if contradicted else WARN,
            subject=asked.recipe.name,
        )


_ADVICE = "the first real request decides; keep the log of the first start"


def unknown(context: Context) -> Iterator[Found]:
    for asked, row in rows_with(context, "unknown"):
        yield Found(
            told(row),
            title=f"{named(asked)}: not known to work",
            cause="",
            fix=row.alternative or _ADVICE,
            subject=asked.recipe.name,
        )
    one = combination(context)
    if one and one.recipe.state is not RecipeState.REFUSED and unheard(one):
        yield Found(
            "no row of the compatibility table has both",
            title=f"nothing is known of {one.engine} with {one.architecture} on {one.chip}",
            cause="it may work: nobody has published a result on a GB10",
            fix=_ADVICE,
            subject=one.recipe.name,
        )


CHECKS = (
    Check("COMPAT001", BLOCK, "combination known not to work", blocked).about(
        detects="a row `blocked` of the compatibility table that the recipe meets.",
        why="somebody has tried it, and it ended with the error that the row names, on this chip and with this "
        "version.",
        fix="the row's alternative. Who built an engine of their own that has what is missing states it with a "
        "local version (`0.5.12+mine`): then --force passes it. A refused recipe says its own reason "
        "(REC001), and this rule is silent",
    ),
    Check("COMPAT002", WARN, "combination known to work badly", degraded).about(
        detects="a row `degraded` of the compatibility table that the recipe meets.",
        why="it starts and answers, but slowly, wrongly at times, or not for long; the row shows which.",
        fix="the row's alternative",
    ),
    Check("COMPAT003", INFO, "nothing known about this combination", unknown).about(
        detects="an architecture that no row of the engine's table has, or a row `unknown` that the recipe meets.",
        why="it may work; nobody has published a result on a GB10.",
        fix="none needed; keep the log of the first start",
    ),
)
