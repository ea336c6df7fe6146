"""`sparkwright recipes show`: one recipe, and what the compatibility table knows of its combination."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sparkwright.adapters.files import Places, open_recipe, reference
from sparkwright.cli.options import json_option, print_json
from sparkwright.cli.recipe_text import describe
from sparkwright.compat.combination import combination
from sparkwright.compat.schema import Row
from sparkwright.compat.table import known_of, unheard
from sparkwright.compat.verdicts import row_text
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe


@click.command(short_help="Everything about one recipe.")
@click.argument("name", metavar="[NAME[@PROFILE] | PATH[@PROFILE]]", required=False, default="")
@click.option("--profile", default="", help="The same as NAME@PROFILE.")
@click.option(
    "--reference", "kind", is_flag=False, flag_value="recipe", default=None, metavar="[recipe|cluster]",
    help="Print the annotated reference of the recipe file, or of the cluster file.",
)  # fmt: skip
@json_option
def show(name: str, profile: str, kind: str | None, as_json: bool) -> None:
    """Everything about one recipe, with its published figures and their sources.

    \b
    Examples:
      sparkwright recipes show deepseek-v4-flash@1m
      sparkwright recipes show --reference
      sparkwright recipes show --reference cluster
    """
    if kind is not None:
        # `--reference cluster` and `--reference NAME`: click gives the option the next word, whatever it is.
        if kind not in ("recipe", "cluster") or name:
            raise RecipeError(f"--reference: found {name or kind!r}, expected recipe, cluster, or nothing")
        click.echo(reference(kind), nl=False)
        return
    if not name:
        raise RecipeError("which recipe? `sparkwright recipes show NAME`", hint="`sparkwright recipes list` shows all")
    places = Places(Path.cwd(), Path.home())
    recipe = open_recipe(name, places, profile)
    if as_json:
        print_json(recipe_json(recipe))
    else:
        others = [open_recipe(_bare(name, recipe), places, p) for p in recipe.profiles if p != recipe.profile]
        click.echo(describe(recipe, others, known_lines(recipe)), nl=False)


def recipe_json(recipe: Recipe) -> dict[str, Any]:
    """The resolved recipe as JSON: fields of domain.recipe.Recipe; sizes in bytes, times in seconds.

    known: what the compatibility table has of its combination.
    """
    return asdict(recipe) | {"known": known_json(recipe)}


def _bare(name: str, recipe: Recipe) -> str:
    """The name or path as given, without its profile: the file that the other profiles are read from."""
    return name.removesuffix(f"@{recipe.profile}") if recipe.profile else name


def known_json(recipe: Recipe) -> list[dict[str, Any]]:
    """verdict, reason, alternative, otherwise, source, date of each row that the recipe meets on GB10 nodes."""
    shown = ("verdict", "reason", "alternative", "otherwise", "source", "date")
    return [{name: getattr(row, name) for name in shown} for row in _rows(recipe)]


def known_lines(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """(verdict, what is known and its source)."""
    for row in _rows(recipe):
        instead = f"; instead: {row.alternative}" if row.alternative and row.verdict != "works" else ""
        yield "disputed" if row.otherwise else row.verdict, f"{row_text(row)}{instead}"
    asked = combination(_context(recipe))
    if asked and unheard(asked):
        yield "unknown", f"nothing is known of {asked.engine} with {asked.architecture} on {asked.chip}"


def _rows(recipe: Recipe) -> tuple[Row, ...]:
    asked = combination(_context(recipe))
    return known_of(asked) if asked else ()


def _context(recipe: Recipe) -> Context:
    return Context(Cluster("", (), ""), recipe=recipe)
