"""`sparkwright recipes import`."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sparkwright.cli.columns import echo
from sparkwright.cli.options import json_option, print_json
from sparkwright.cli.recipe_validate import Rehearsed, rehearsed
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import Imported, import_recipe
from sparkwright.recipes.load import load_recipe


@click.command(name="import", short_help="Convert another tool's recipe.")
@click.argument("file", metavar="FILE|-")
@click.option("--out", default="", metavar="NAME.yaml", help="Write the recipe to this file. [default: stdout]")
@click.option("--name", default="", metavar="NAME", help="Name of the recipe. [default: the source's]")
@click.option("--engine-version", "version", default="", metavar="VERSION", help="Version of the engine in the image.")
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Number of nodes. [default: the source's]")
@click.option("--strict", is_flag=True, help="Exit 1 if anything was left out, assumed, or grants privileges.")
@json_option
def import_command(file: str, out: str, strict: bool, as_json: bool, **options: Any) -> None:
    """Convert a recipe of sparkrun (v1, v2) or vLLM. `-` reads stdin.

    Exit status: 2 if the result is not a valid recipe yet; it is written anyway, and each line gives a reason.

    \b
    Examples:
      sparkwright recipes import theirs.yaml --out mine.yaml
      sparkwright recipes import - --engine-version 0.26.0 <theirs.yaml >mine.yaml
    """
    source = file if file != "-" else "stdin"
    made = import_recipe(_text(file), source, ImportOptions(options["name"], options["version"], options["nodes"] or 0))
    path = out or f"{made.name}.yaml"
    said = Rehearsed(made.errors) if made.errors else rehearsed(_variants(made.text, path), path)
    if out:
        _write(Path(out), made.text)
    if as_json:
        print_json({"name": made.name, "text": made.text, "left_out": made.notes, **asdict(said)})
    else:
        _say(made, said, path, shown=not out)
    if said.errors or (strict and made.notes):
        raise click.exceptions.Exit(2 if said.errors else 1)


def _variants(text: str, path: str) -> list[Recipe]:
    recipe = load_recipe(text, path)
    return [recipe, *(load_recipe(text, path, profile) for profile in recipe.profiles)]


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is not UTF-8 text"
        raise RecipeError(f"{file}: cannot be read: {why}", hint="check the path") from None


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise UsageError(f"{path}: exists already", hint="give another --out, or remove it first")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}", hint="give another --out") from None


def _say(made: Imported, said: Rehearsed, path: str, shown: bool) -> None:
    if shown:
        click.echo(made.text, nl=False)
    for note in made.notes:
        echo(f"note: {note}", err=True)
    for line in (*said.softly(), *said.errors):
        echo(line, err=True)
    todo = f"{len(said.errors)} error(s); edit the file, then `sparkwright recipes validate {path}`"
    good = "valid, state documented: nobody has served it with sparkwright"
    echo(f"{path}: {todo if said.errors else good}", err=True)
