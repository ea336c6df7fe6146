"""`make docs`: the reference pages, made from what they are about.

All are in docs/reference: cli.md is the help of every verb; recipe-reference.md and cluster-reference.md are the
annotated YAML files that the program itself prints; recipes.md lists the shipped recipes. docs/architecture.svg and
the samples in guides are made, too. `--check`: exit 1 when stale.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from docs_completion import completion_page
from docs_engines import engines_page
from docs_environment import environment_page
from docs_exits import exit_table, exits_page
from docs_json import json_page
from docs_picture import picture
from docs_samples import with_samples
from docs_schemas import SHAPES, schema_text

from sparkwright.adapters.files import Places, find_recipe, recipe_names, reference
from sparkwright.causes.candidates import line_alternatives, mechanisms
from sparkwright.causes.diagnose import log_book
from sparkwright.causes.load import NEEDS
from sparkwright.cli.main import main as command
from sparkwright.domain.recipe import Recipe
from sparkwright.logscan.book import digest, needs_of
from sparkwright.recipes.load import load_recipe

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SAMPLED = ("guides/checking.md", "guides/planner.md", "guides/troubleshooting.md")
MADE = "<!-- Made by `make docs`; edit its source instead. -->\n"
WIDTH = 100


STATES = """
ready: served on GB10 by somebody who published how, and every flag and variable is one that its engine's version has.
documented: written from sources; something of it is left to you, named by the reason. refused: known not to work;
`up` prints why and what to use instead. No recipe has been run by sparkwright's authors on GB10.
`sparkwright recipes show NAME` has the conditions, the figures with their sources, and what the sources contradict.
"""


def main(words: list[str]) -> int:
    pages = {**{DOCS / name: text for name, text in own_pages()}, NEEDS: needs_text()}
    check = "--check" in words
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    for path in [] if check else stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages[path])
    for path in stale:
        print(f"docs: {path.resolve().relative_to(ROOT)} {'is stale: make docs' if check else 'written'}")
    return int(check and bool(stale))


def needs_text() -> str:
    """The needs of all patterns, which `diagnose` would otherwise compute at its start."""
    rows = []
    more = (pattern for mechanism in mechanisms() for pattern in mechanism.patterns)
    for pattern in (*(one.text for one in log_book().patterns), *more, *line_alternatives()):
        with contextlib.suppress(ValueError):
            found, words = needs_of(pattern)
            rows.append(f'"{digest(pattern)}": {json.dumps([*found, *words])}')
    return "{{\n{}\n}}\n".format(",\n".join(sorted(set(rows))))


def own_pages() -> Iterator[tuple[str, str]]:
    yield "reference/cli.md", cli_page()
    yield "reference/recipe-reference.md", yaml_page("The recipe file", "recipes show --reference", reference("recipe"))
    yield (
        "reference/cluster-reference.md",
        yaml_page("The cluster file", "recipes show --reference cluster", reference("cluster")),
    )
    yield "reference/recipes.md", recipes_page()
    yield "reference/engines.md", engines_page(MADE)
    yield "reference/json.md", json_page(MADE, tuple(SHAPES))
    yield "reference/documents.schema.json", schema_text()
    yield "reference/environment.md", environment_page(MADE)
    yield "reference/completion.md", completion_page(MADE, walk_verbs(command, "sparkwright"))
    yield "reference/exit-codes.md", exits_page(MADE, walk_verbs(command, "sparkwright"))
    yield "architecture.svg", picture()
    for name in SAMPLED:
        yield name, with_samples((DOCS / name).read_text())


def recipes_page() -> str:
    """One row a recipe: what, on how many nodes, in which state and why, and where it comes from."""
    rows = [recipe_row(recipe) for recipe in shipped()]
    head = "| recipe | model | engine | nodes | state | sources |\n|---|---|---|---|---|---|"
    return "\n".join([f"# The recipes\n\n{MADE}{STATES}", head, *rows, ""])


def shipped() -> Iterator[Recipe]:
    nowhere = Places(Path("/nonexistent"), Path("/nonexistent"))
    for name in recipe_names(nowhere):
        found = find_recipe(name, nowhere)
        yield load_recipe(found.text, found.source)


def recipe_row(recipe: Recipe) -> str:
    profiles = f" ({', '.join(recipe.profiles)})" if recipe.profiles else ""
    instead = f" Instead: {recipe.instead}." if recipe.instead else ""
    links = " ".join(f"[{n}]({url})" for n, url in enumerate(recipe.references, 1) if url.startswith("https://"))
    cells = (
        f"{recipe.name}{profiles}",
        recipe.model.label,
        f"{recipe.engine.name} {recipe.engine.version}",
        str(recipe.nodes),
        f"**{recipe.state}**: {recipe.state_reason}{instead}",
        links,
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def cli_page() -> str:
    parts = [f"# The commands\n\n{MADE}", f"```text\n{help_of(command, 'sparkwright')}```\n"]
    parts.append(f"## Exit codes\n\n{exit_table()}")
    for path, verb in walk_verbs(command, "sparkwright"):
        parts.append(f"## {path}\n\n```text\n{help_of(verb, path)}```\n")
    return "\n".join(parts)


def walk_verbs(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        assert verb
        yield f"{path} {name}", verb
        if isinstance(verb, click.Group):
            yield from walk_verbs(verb, f"{path} {name}")


def help_of(verb: click.Command, path: str) -> str:
    settings: Mapping[str, object] = {"terminal_width": WIDTH, "help_option_names": ["-h", "--help"], "color": False}
    context = click.Context(verb, info_name=path, **settings)  # type: ignore[arg-type]
    return f"{verb.get_help(context).rstrip()}\n"


def yaml_page(title: str, verb: str, text: str) -> str:
    head = f"# {title}\n\n{MADE}\n`sparkwright {verb}` prints it. It is a valid file, and the tests load it.\n"
    return f"{head}\n```yaml\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
