"""`sparkwright recipes list | show | validate | inventory`: what can be served, what is known of it, is it right."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sparkwright.adapters.files import (
    Places,
    SourceText,
    find_recipe,
    open_recipe,
    recipe_names,
    reference,
    split_profile,
)
from sparkwright.cli.columns import say
from sparkwright.cli.failure import hint_json
from sparkwright.cli.inventory import inventory_command
from sparkwright.cli.recipe_import import import_command
from sparkwright.cli.recipe_known import known_json
from sparkwright.cli.recipe_text import describe, first_sentence, listing
from sparkwright.cli.rehearsed import Said, rehearsed
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe, RecipeState
from sparkwright.recipes.load import load_recipe, what_is_left

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")


@click.group(name="recipes")
def recipes() -> None:
    """List, show, validate and import recipes, shipped ones and your own; list checkpoints.

    \b
    Examples:
      sparkwright recipes list
      sparkwright recipes show deepseek-v4-flash@1m
    """


recipes.add_command(import_command)
recipes.add_command(inventory_command)


@recipes.command(name="list", short_help="List all recipes, shipped ones and your own.")
@_JSON
def list_recipes(as_json: bool) -> None:
    """List all recipes: shipped ones and those in ~/.config/sparkwright/recipes.

    \b
    Examples:
      sparkwright recipes list
      sparkwright recipes list --json
    """
    rows, broken = _rows(_places())
    if as_json:
        _print_json({"recipes": rows, "broken": broken})
    else:
        say(listing(rows))
    for entry in broken:
        say("\n".join(entry["errors"]), err=True)


@recipes.command(short_help="Everything about one recipe.")
@click.argument("name", metavar="[NAME[@PROFILE] | PATH[@PROFILE]]", required=False, default="")
@click.option("--profile", default="", help="The same as NAME@PROFILE.")
@click.option(
    "--reference", "kind", is_flag=False, flag_value="recipe", default=None, metavar="[recipe|cluster]",
    help="Print the annotated reference of the recipe file, or of the cluster file.",
)  # fmt: skip
@_JSON
def show(name: str, profile: str, kind: str | None, as_json: bool) -> None:
    """Everything about one recipe, with its published figures and their sources.

    \b
    Examples:
      sparkwright recipes show deepseek-v4-flash@1m
      sparkwright recipes show --reference
      sparkwright recipes show --reference cluster
    """
    if kind is not None:
        _show_reference(kind, name)
        return
    if not name:
        raise RecipeError("which recipe? `sparkwright recipes show NAME`", hint="`sparkwright recipes list` shows all")
    recipe = open_recipe(name, _places(), profile)
    if as_json:
        _print_json(recipe_json(recipe))
    else:
        others = (p for p in recipe.profiles if p != recipe.profile)
        click.echo(describe(recipe, [open_recipe(_bare(name, recipe), _places(), p) for p in others]), nl=False)


@recipes.command(short_help="Checks files or recipes without any node.")
@click.argument("names", metavar="FILE|NAME...", nargs=-1, required=True)
@_JSON
def validate(names: tuple[str, ...], as_json: bool) -> None:
    """Checks files or recipes, each with all its profiles, without any node: keys and values, the options and
    variables that the engine's version has, the split that the model's shape allows. Exit code 0 or 2.

    \b
    Examples:
      sparkwright recipes validate ./mine.yaml
      sparkwright recipes validate deepseek-v4-flash gpt-oss-20b --json
    """
    results = [_validated(name, _places()) for name in names]
    if as_json:
        _print_json({"results": results})
    else:
        for result in results:
            _say(result)
    if any(not result["valid"] for result in results):
        raise click.exceptions.Exit(2)


def recipe_json(recipe: Recipe) -> dict[str, Any]:
    """The resolved recipe as JSON: fields of domain.recipe.Recipe; sizes in bytes, times in seconds.

    known: what the compatibility table has of its combination.
    """
    return asdict(recipe) | {"known": known_json(recipe)}


def _bare(name: str, recipe: Recipe) -> str:
    """The name or path as given, without its profile: the file that the other profiles are read from."""
    return name.removesuffix(f"@{recipe.profile}") if recipe.profile else name


def _places() -> Places:
    return Places(Path.cwd(), Path.home())


def _show_reference(kind: str, name: str) -> None:
    # `--reference cluster` and `--reference NAME`: click gives the option the next word, whatever it is.
    if kind not in ("recipe", "cluster") or name:
        raise RecipeError(f"--reference: observed {name or kind!r}; allowed: recipe, cluster, or nothing")
    click.echo(reference(kind), nl=False)


def _rows(places: Places) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the list, and the recipes that cannot be loaded with their errors."""
    rows: list[dict[str, Any]] = []
    broken: list[dict[str, Any]] = []
    for name in recipe_names(places):
        try:
            found = find_recipe(name, places)
            rows.append(_row(load_recipe(found.text, found.source), found.origin))
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


def _validated(name: str, places: Places) -> dict[str, Any]:
    """One row: name, source, valid, profiles, hash; refused: why, or empty; errors, warnings and notes: lines."""
    base: dict[str, Any] = {"name": name, "valid": True, "profiles": [], "hash": "", **asdict(Said())}
    found: SourceText | None = None
    try:
        bare, profile = split_profile(name, places)
        found = find_recipe(bare, places)
        recipe = load_recipe(found.text, found.source, profile)
    except RecipeError as error:
        more = _rest(found) if found else Said()
        errors = [*error.message.splitlines(), *more.errors]
        return base | asdict(more) | {"valid": False, "errors": errors} | hint_json(error.hint)
    variants = [recipe] if profile else [recipe, *(load_recipe(found.text, found.source, p) for p in recipe.profiles)]
    said = rehearsed(variants, found.source)
    base |= {"valid": not said.errors, **asdict(said)}
    refused = first_sentence(recipe.state_reason) if recipe.state is RecipeState.REFUSED else ""
    return base | {"profiles": list(recipe.profiles), "hash": recipe.hash, "refused": refused}


def _rest(found: SourceText) -> Said:
    """What else is to be said of a file with mistakes: each class of them would else hide the next."""
    try:
        return rehearsed(what_is_left(found.text, found.source), found.source)
    except RecipeError:
        return Said()


def _say(result: dict[str, Any]) -> None:
    for line in Said(warnings=result["warnings"], notes=result["notes"]).softly():
        say(line, err=True)
    if result["valid"]:
        profiles = f", profiles {', '.join(result['profiles'])}" if result["profiles"] else ""
        but = f", and refused by `up`: {result['refused']}" if result.get("refused") else ""
        say(f"{result['name']}: valid (hash {result['hash']}{profiles}){but}")
        return
    for line in result["errors"]:
        say(line)
    count = len(result["errors"])
    hint = f"; {result['hint']}" if result.get("hint") else ""
    say(f"{result['name']}: {count} error{'s' if count > 1 else ''}{hint}", err=True)


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, default=str))
