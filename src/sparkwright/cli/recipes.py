"""`sparkwright recipes`, and `recipes list`."""

import importlib
from pathlib import Path
from typing import Any

import click

from sparkwright.adapters.files import Places, find_recipe, recipe_names, recipe_of
from sparkwright.cli.columns import echo
from sparkwright.cli.options import print_json
from sparkwright.cli.recipe_text import first_sentence, listing
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe

# command -> (module, attribute)
_MODULES = {
    "import": ("recipe_import", "import_command"),
    "inventory": ("inventory", "inventory_command"),
    "show": ("recipe_show", "show"),
    "validate": ("recipe_validate", "validate"),
}
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")


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


@recipes.command(name="list", short_help="List all recipes, shipped ones and your own.")
@_JSON
def list_recipes(as_json: bool) -> None:
    """List all recipes: shipped ones and those in ~/.config/sparkwright/recipes.

    \b
    Examples:
      sparkwright recipes list
      sparkwright recipes list --json
    """
    rows, broken = _rows(Places(Path.cwd(), Path.home()))
    if as_json:
        print_json({"recipes": rows, "broken": broken})
    else:
        echo(listing(rows))
    for entry in broken:
        echo("\n".join(entry["errors"]), err=True)


def _rows(places: Places) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the list, and the recipes that cannot be loaded with their errors."""
    rows: list[dict[str, Any]] = []
    broken: list[dict[str, Any]] = []
    for name in recipe_names(places):
        try:
            found = find_recipe(name, places)
            rows.append(_row(recipe_of(found, places), found.origin))
        except RecipeError as error:
            broken.append({"name": name, "errors": error.message.splitlines()})
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
        "simulated": recipe.model.simulated,
        "origin": origin,
        "source": recipe.source,
    }
