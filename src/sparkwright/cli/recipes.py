"""`sparkwright recipes`, `recipes list` and `recipes show`."""

import importlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from sparkwright.adapters.files import Places, find_recipe, open_recipe, recipe_names, recipe_of, reference
from sparkwright.checks.compat.combination import combination
from sparkwright.checks.compat.table import known_of, row_text, unheard
from sparkwright.cli import complete
from sparkwright.cli.columns import echo_text
from sparkwright.cli.kinds import Whole, renamed_option
from sparkwright.cli.options import answer, json_option, print_json
from sparkwright.cli.recipe_text import describe, first_sentence, listing
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.catalogue import Purpose, list_place, older_recipes, suits_purpose
from sparkwright.wiring import places

# command -> (module, attribute)
_MODULES = {
    "import": ("recipe_validate", "import_command"),
    "inventory": ("inventory", "inventory_command"),
    "new": ("plan_estimate", "write_new_recipe"),
    "source": ("recipe_sources", "source"),
    "validate": ("recipe_validate", "validate"),
}


class _Recipes(click.Group):
    """Imports the modules of its other commands when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_MODULES])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return super().get_command(ctx, cmd_name)
        module, attribute = _MODULES[cmd_name]
        found: click.Command = getattr(importlib.import_module(f"sparkwright.cli.{module}"), attribute)
        return found


@click.group(name="recipes", cls=_Recipes)
def recipes() -> None:
    """List, show, validate and import recipes, shipped ones and your own; list checkpoints.

    \b
    Examples:
      sparkwright recipes list
      sparkwright recipes show deepseek-v4-flash@1m
    """


@recipes.command(name="list", short_help="List all recipes, or those that suit a purpose.")
@click.option("--nodes", type=Whole(1, 64), default=None, metavar="N", help="Only recipes for N nodes.")
@renamed_option(
    "--purpose", was="--for", type=click.Choice([one.value for one in Purpose]), default=None, metavar="PURPOSE",
    help=f"Only recipes that suit: {', '.join(Purpose)}.",
)  # fmt: skip
@click.option("--source", "registry", default="", metavar="NAME", help="List the recipes of this registry.")
@json_option
def list_recipes(nodes: int | None, purpose: str | None, registry: str, as_json: bool) -> None:
    """List all recipes: shipped ones and those in ~/.config/sparkwright/recipes; older ones last.

    With --nodes or --purpose, only what suits, with the size of its weights, the expected tokens per second, and its
    state.

    \b
    Examples:
      sparkwright recipes list
      sparkwright recipes list --nodes 1 --purpose code
      sparkwright recipes list --source arena
    """
    if registry:
        from sparkwright.cli.recipe_sources import list_source

        list_source(registry, nodes, purpose, as_json)
        return
    rows, broken = _rows(places(), nodes, Purpose(purpose) if purpose else None)
    if nodes or purpose:
        from sparkwright.cli.recipe_choice import choice_text  # the planner, which the plain list does without

        answer(as_json, {"recipes": rows, "broken": broken}, choice_text(rows))
    else:
        answer(as_json, {"recipes": rows, "broken": broken}, listing(rows))
    for entry in broken:
        echo_text("\n".join(entry["errors"]), err=True)


def _rows(at: Places, nodes: int | None, purpose: Purpose | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the list, and the recipes that cannot be loaded with their errors."""
    found, broken = list[tuple[Recipe, str]](), list[dict[str, Any]]()
    for name in recipe_names(at):
        try:
            text = find_recipe(name, at)
            recipe = recipe_of(text, at)
        except RecipeError as error:
            broken.append({"name": name, "errors": error.message.splitlines()})
            continue
        hidden = bool(nodes or purpose) and recipe.model.simulated
        if not hidden and (not nodes or recipe.nodes == nodes) and (not purpose or suits_purpose(recipe, purpose)):
            found.append((recipe, text.origin))
    found.sort(key=lambda one: list_place(one[0], one[1] == "shipped"))
    rows = [_row(recipe, origin) for recipe, origin in found]
    if nodes or purpose:
        from sparkwright.cli.recipe_choice import choice_row

        rows = [row | choice_row(recipe, purpose) for row, (recipe, _) in zip(rows, found, strict=True)]
    return rows, broken


def _row(recipe: Recipe, origin: str) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "title": recipe.title,
        "model": recipe.model.label,
        "engine": recipe.engine.name,
        "version": recipe.engine.version,
        "nodes": recipe.nodes,
        "profiles": list(recipe.profiles),
        "default_profile": recipe.profile,
        "state": recipe.state.value,
        "reason": first_sentence(recipe.state_reason),
        "instead": recipe.instead,
        "kind": recipe.model.kind.value,
        "older": older_recipes().get(recipe.name, "") if origin == "shipped" else "",
        "simulated": recipe.model.simulated,
        "origin": origin,
        "source": recipe.source,
    }


def _show_file_format(name: str, kind: str | None, schema: str | None, as_json: bool) -> None:
    option, which = ("--reference", kind) if kind is not None else ("--schema", schema)
    # `--reference cluster` and `--reference NAME`: click gives the option the next word, whatever it is.
    if which not in ("recipe", "cluster") or name:
        raise RecipeError(f"{option}: found {name or which!r}, expected recipe, cluster, or nothing")
    if schema is None:
        document: dict[str, Any] = {"text": reference(which)}
        text = reference(which)
    else:
        from sparkwright.recipes.file_schema import file_schema

        made = file_schema(which, reference(which))
        document, text = {"json_schema": made}, f"{json.dumps(made, indent=2, ensure_ascii=False)}\n"
    if as_json:
        print_json({"reference": which, **document})
    else:
        click.echo(text, nl=False)


@recipes.command("show", short_help="Print everything about one recipe.")
@click.argument(
    "name", metavar="[NAME[@PROFILE] | PATH[@PROFILE]]", required=False, default="", shell_complete=complete.recipes
)
@click.option(
    "--profile", default="", metavar="NAME", shell_complete=complete.profiles, help="The same as NAME@PROFILE."
)
@click.option(
    "--reference", "kind", is_flag=False, flag_value="recipe", default=None, metavar="[recipe|cluster]",
    help="Print the annotated reference of the recipe file, or of the cluster file.",
)  # fmt: skip
@click.option(
    "--schema", is_flag=False, flag_value="recipe", default=None, metavar="[recipe|cluster]",
    help="Print the JSON schema of the recipe file, or of the cluster file, for an editor.",
)  # fmt: skip
@json_option
def show_recipe(name: str, profile: str, kind: str | None, schema: str | None, as_json: bool) -> None:
    """Print everything about one recipe, with its published figures and their sources.

    \b
    Examples:
      sparkwright recipes show deepseek-v4-flash@1m
      sparkwright recipes show --reference
      sparkwright recipes show --reference cluster
      sparkwright recipes show --schema > recipe.schema.json
    """
    if kind is not None or schema is not None:
        _show_file_format(name, kind, schema, as_json)
        return
    if not name:
        raise RecipeError("which recipe? `sparkwright recipes show NAME`", hint="`sparkwright recipes list` shows all")
    at = places()
    recipe = open_recipe(name, at, profile)
    if as_json:
        print_json(recipe_json(recipe))
        return
    # The name or path as given, without its profile: the file that the other profiles are read from.
    bare = name.removesuffix(f"@{recipe.profile}") if recipe.profile else name
    others = [open_recipe(bare, at, p) for p in recipe.profiles if p != recipe.profile]
    click.echo(describe(recipe, others, known_lines(recipe)), nl=False)


def recipe_json(recipe: Recipe) -> dict[str, Any]:
    """The resolved recipe as JSON: fields of domain.recipe.Recipe; sizes in bytes, times in seconds.

    known: the rows of the compatibility table that it meets on GB10 nodes.
    """
    asked = combination(Context(Cluster("", (), ""), recipe=recipe))
    rows = known_of(asked) if asked else ()
    shown = ("verdict", "reason", "alternative", "otherwise", "source", "date")
    return asdict(recipe) | {"known": [{name: getattr(row, name) for name in shown} for row in rows]}


def known_lines(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """(verdict, what is known and its source)."""
    asked = combination(Context(Cluster("", (), ""), recipe=recipe))
    for row in known_of(asked) if asked else ():
        instead = f"; instead: {row.alternative}" if row.alternative and row.verdict != "works" else ""
        yield "disputed" if row.otherwise else row.verdict, f"{row_text(row)}{instead}"
    if asked and unheard(asked):
        yield "unknown", f"nothing is known of {asked.engine} with {asked.architecture} on {asked.chip}"
