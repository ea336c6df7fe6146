"""`sparkwright engines validate`, and what `list` and `show` say of engines that a file describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkwright.adapters.files import engine_files, read_text
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, echo_text
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.units import counted
from sparkwright.domain.values import asdict
from sparkwright.engines.definitions import shipped_definitions
from sparkwright.wiring import places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkwright.engines.variants import EngineVariant

_NEVER = "not run by sparkwright's authors"


@click.command(short_help="Check files that describe an engine.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@shared.json_option
def validate(files: tuple[Path, ...], as_json: bool) -> None:
    """Check files that describe an engine: keys, placeholders and patterns. Exit code 0 or 2.

    \b
    Examples:
      sparkwright engines validate ./my-engine.toml
    """
    results = [_checked(file) for file in files]
    lines = [line for one in results for line in one["errors"] or [f"{one['file']}: valid ({one['engine']})"]]
    shared.answer(as_json, {"results": results}, "\n".join(lines))
    if any(one["errors"] for one in results):
        raise click.exceptions.Exit(2)


def _checked(file: Path) -> dict[str, Any]:
    from sparkwright.recipes.engine_file import read_engine  # pydantic

    try:
        made = read_engine(read_text(file, f"engine file {file}"), str(file))
    except RecipeError as error:
        return {"file": str(file), "engine": "", "errors": error.message.splitlines()}
    return {"file": str(file), "engine": made.name, "errors": []}


def described() -> tuple[Mapping[str, EngineDefinition], list[dict[str, str]]]:
    """The engines that files describe, by name; the files that cannot be used.

    Of one name, the user's own is used before the one that ships, and a registry's by its own recipes only.
    """
    from sparkwright.adapters.recipe_sources import RecipeSources
    from sparkwright.recipes.engine_file import read_engine

    at = places()
    own, others, broken = dict[str, EngineDefinition](), dict[str, EngineDefinition](), list[dict[str, str]]()
    files = ((engine_files(at), own), (RecipeSources(at.sources, at.cwd).engines(), others))
    for (source, text), found in ((file, found) for texts, found in files for file in texts):
        try:
            made = read_engine(text, source)
            found.setdefault(made.name, made)
        except RecipeError as error:
            broken.append({"file": source, "error": error.message})
    return {**others, **shipped_definitions(), **own}, broken


def engine_row(made: EngineDefinition) -> dict[str, Any]:
    """One engine for `list`."""
    return {
        "engine": made.name,
        "version": ", ".join(made.versions) or "any",
        "options": len(made.flags),
        "from": f"{made.source}; {f'run: {made.tried}' if made.tried else _NEVER}",
    }


def variant_row(made: EngineVariant) -> dict[str, Any]:
    """One known fork for `list`."""
    return {
        "engine": made.engine,
        "variant": made.name,
        "adds": [*made.env, *made.flags, *made.also],
        "from": f"{made.title}; {_NEVER}",
        "see": list(made.see),
    }


def show_definition(made: EngineDefinition, as_json: bool) -> None:
    """Print what a file says of an engine, and what it does not say."""
    words = {
        "command": " ".join(made.command),
        "on several nodes": " ".join((*made.several, *(("workers:", *made.worker) if made.worker else ()))),
        "order": made.start_order,
        "ready": f"GET {made.health}, then a real answer" if made.health else "a real answer",
        "API key": made.key_env or " ".join(made.key_words) or "none",
        "figures": f"{made.metrics_page}, {len(made.metrics)} known" if made.metrics_page else "",
        "log": f"{len(made.log.get('rule', ()))} kinds of lines" if made.log else "",
        "options": f"{len(made.flags)} known" if made.flags else "",
        "variables": f"{len(made.variables)} known, of {' '.join(made.prefixes)}" if made.variables else "",
        "words": f"{counted(len({**made.options, **made.words}), 'meaning')}, {counted(len(made.renamed), 'old name')}",
        "tune": ", ".join(hint.key for hint in made.tune.values()),
        "drafts off": ", ".join(f"{name}: {json.dumps(value)} in a request" for name, value in made.serial.items()),
        "memory and checks": ", ".join(made.traits),
        "quantizations": ", ".join(made.quantizations),
        "run": made.tried or _NEVER,
        "read for": ", ".join(made.versions),
        "sources": " ".join(made.see),
    }
    rows = [(name, text or "not known") for name, text in words.items()]
    shared.answer(
        as_json, engine_row(made) | {"definition": asdict(made)}, f"{made.name}: {made.title}\n{aligned(rows)}"
    )


def warn_of(broken: list[dict[str, str]]) -> None:
    for one in broken:
        echo_text(f"warning: {one['file']} is not used: {one['error']}", err=True)
