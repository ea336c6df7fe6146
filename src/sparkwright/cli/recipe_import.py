"""`sparkwright recipes import`."""

import sys
from pathlib import Path

import click

from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.recipes.importers.draft import Wish
from sparkwright.recipes.importers.importer import Imported, import_recipe


@click.command(name="import", help="Another tool's recipe as ours: sparkrun's (v1, v2) and vLLM's. `-` reads stdin.")
@click.argument("file", metavar="FILE|-")
@click.option("--out", default="", metavar="NAME.yaml", help="Write it there. [default: stdout]")
@click.option("--name", default="", metavar="NAME", help="Name of the recipe. [default: the source's]")
@click.option("--engine-version", "version", default="", metavar="VERSION", help="The engine in the image.")
@click.option("--nodes", default=0, metavar="N", help="Spread it over N nodes. [default: as the source says]")
@click.option("--strict", is_flag=True, help="Exit 1 when anything was left out or assumed.")
def import_command(file: str, out: str, strict: bool, name: str, **wish: str | int) -> None:
    """Exit 2 when the result is not a valid recipe yet; it is written all the same, and each line says why."""
    made = import_recipe(_text(file), file if file != "-" else "stdin", Wish(name, **wish))  # type: ignore[arg-type]
    if out:
        _write(Path(out), made.text)
    else:
        click.echo(made.text, nl=False)
    _say(made, out or f"{made.name}.yaml")
    if made.errors:
        raise click.exceptions.Exit(2)
    if strict and made.notes:
        raise click.exceptions.Exit(1)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is not UTF-8 text"
        raise RecipeError(f"{file}: cannot be read: {why}", cure="check the path") from None


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise UsageError(f"{path}: exists already", cure="give another --out, or remove it first")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}", cure="give another --out") from None


def _say(made: Imported, path: str) -> None:
    for note in made.notes:
        click.echo(f"not taken over or assumed: {note}", err=True)
    for line in made.errors:
        click.echo(line, err=True)
    good = f"{len(made.errors)} error(s); edit the file, then `sparkwright recipes validate {path}`"
    click.echo(
        f"{path}: {good if made.errors else 'good, state documented: nobody has served it with sparkwright'}", err=True
    )
