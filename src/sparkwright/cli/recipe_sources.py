"""`sparkwright recipes source`: registries of recipes, from a git repository or a folder."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from sparkwright.adapters.recipe_sources import KeptSource, RecipeSources, Snapshot, Update
from sparkwright.cli.columns import aligned, echo_text
from sparkwright.cli.incidents import local_time
from sparkwright.cli.kinds import renamed_option
from sparkwright.cli.options import answer, json_option
from sparkwright.cli.recipe_validate import rehearsed
from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import counted
from sparkwright.domain.values import asdict
from sparkwright.wiring import places

_SHOWN = 20
_MARKS = {"new": "+", "gone": "-", "changed": "~", "broken": "!", "mended": "~"}


def recipe_sources() -> RecipeSources:
    at = places()
    return RecipeSources(at.sources, at.cwd, sys.stdin.isatty() and sys.stderr.isatty())


def check(variants: Sequence[Recipe], path: str) -> Sequence[str]:
    """The reasons why a recipe cannot be started, as `recipes validate` prints them."""
    return rehearsed(variants, path).errors


@click.group(name="source", short_help="Add, update and remove registries of recipes.")
def source() -> None:
    """Add, list, update and remove registries of recipes, ours or sparkrun's.

    A registry is a git repository or a folder. Its recipes are addressed as SOURCE/RECIPE, stay at one commit until you
    update, and work offline. git uses your own credentials. Nothing of a registry runs when it is added or updated.

    \b
    Examples:
      sparkwright recipes source add https://github.com/spark-arena/recipe-registry --source-name arena
      sparkwright recipes list --source arena
      sparkwright plan arena/qwen3.6-35b-a3b-fp8-vllm
    """


@source.command("add", short_help="Fetch a registry and check all its recipes.")
@click.argument("where", metavar="URL|FOLDER")
@renamed_option(
    "--source-name",
    "name",
    was="--name",
    default="",
    metavar="NAME",
    help="What to call it. [default: by its index or its address]",
)
@json_option
def add_registry(where: str, name: str, as_json: bool) -> None:
    """Fetch a registry, check all its recipes, and pin its commit. Exit code 2 if it cannot be used; nothing is kept.

    \b
    Examples:
      sparkwright recipes source add git@github.com:acme/recipes.git
      sparkwright recipes source add ~/recipes --source-name mine
    """
    made = recipe_sources().add(where, name, check, _told)
    answer(as_json, snapshot_json(made), _added(made))


@source.command(name="list", short_help="List the registries and their commits.")
@json_option
def list_registries(as_json: bool) -> None:
    """List the registries with their pinned commits.

    \b
    Examples:
      sparkwright recipes source list
      sparkwright recipes source list --json
    """
    found = recipe_sources().all()
    rows = [(one.name, one.commit[:12], local_time(one.at), one.url, one.title) for one in found]
    answer(as_json, {"schema": 1, "sources": [asdict(one) for one in found]}, aligned(rows) or "no recipe sources")


@source.command(short_help="Show what changed in a registry, then take it over.")
@click.argument("names", metavar="[NAME...]", nargs=-1)
@click.option("--yes", is_flag=True, help="Take changes over without asking.")
@click.option("--rewritten", is_flag=True, help="Accept a registry whose history no longer has the pinned commit.")
@json_option
def update(names: tuple[str, ...], yes: bool, rewritten: bool, as_json: bool) -> None:
    """Fetch registries, check all recipes again, show what changed, and ask before it takes effect.

    \b
    Examples:
      sparkwright recipes source update
      sparkwright recipes source update arena --yes
    """
    sources = recipe_sources()
    wanted = names or tuple(one.name for one in sources.all())
    documents, lines = [], []
    for name in wanted:
        found = sources.update(name, check, _told)
        taken = _apply(sources, found, yes, rewritten, as_json)
        lines.append(f"{name}: {_outcome(found, taken)}")
        documents.append({**_update_json(found), "taken": taken})
    answer(as_json, {"schema": 1, "updates": documents}, "\n".join(lines) or "no recipe sources")


@source.command(short_help="Forget a registry and its copy.")
@click.argument("name", metavar="NAME")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Forget a registry and delete its copy. Deployments that were started from it keep running.

    \b
    Examples:
      sparkwright recipes source remove arena
      sparkwright recipes source remove arena --json
    """
    gone = recipe_sources().remove(name)
    answer(as_json, {"schema": 1, "removed": asdict(gone)}, f"removed {gone.name} ({gone.url})")


def list_source(name: str, nodes: int | None, purpose: str | None, as_json: bool) -> None:
    """`recipes list --source`: the recipes of a registry, as its last update found them."""
    if purpose:
        raise UsageError(
            "--purpose knows the recipes that are shipped and your own", f"recipes list --source {name} --nodes 1"
        )
    found = recipe_sources().snapshot(name)
    entries = [entry for entry, _ in found.recipes.values() if not nodes or entry.nodes == nodes]
    rows = [("NAME", "ENGINE", "NODES", "STATE", "TITLE")]
    for one in entries:
        state = "not startable as published" if one.errors else one.state
        rows.append((f"{name}/{one.name}", f"{one.engine} {one.version}", str(one.nodes or ""), state, one.title))
    document = {"source": asdict(found.source), "recipes": [asdict(one) for one in entries], "broken": []}
    answer(as_json, document, aligned(rows) if entries else "no recipes")


def _apply(sources: RecipeSources, found: Update, yes: bool, rewritten: bool, as_json: bool) -> bool:
    """Applies the update; True if it took effect."""
    name = found.new.source.name
    if found.rewritten and not rewritten:
        gone = found.old.source.commit[:12]
        why = f"{name}: the registry changed its history: commit {gone} is no longer in it; nothing was taken over"
        raise UsageError(why, f"ask its owner why; then: sparkwright recipes source update {name} --rewritten")
    if found.old.source.commit == found.new.source.commit:
        return False
    if found.changes and not as_json:
        echo_text(changes_text(found))
    if found.changes and not yes:
        if as_json or not sys.stdin.isatty():
            raise UsageError(f"{name}: nobody can be asked whether to take this over", "--yes takes it over")
        if not click.confirm(f"take over {counted(len(found.changes), 'change')} of {name}?", err=True):
            return False
    sources.apply(found)
    return True


def changes_text(found: Update) -> str:
    """A line a recipe, with what changed in it below."""
    old, new = found.old.source.commit[:12], found.new.source.commit[:12]
    lines = [f"{found.new.source.name}: {old} -> {new}"]
    for change in found.changes:
        lines.append(f"  {_MARKS[change.kind]} {change.name} ({change.kind})")
        lines += [f"      {line}" for line in change.lines]
    return "\n".join(lines)


def _outcome(found: Update, taken: bool) -> str:
    commit = found.new.source.commit[:12]
    if found.old.source.commit == found.new.source.commit:
        return f"nothing new, commit {commit}"
    if not taken:
        return f"left at commit {found.old.source.commit[:12]}"
    return f"now at commit {commit}, {counted(len(found.changes), 'recipe')} changed"


def _added(made: Snapshot) -> str:
    """The text about an added registry: its recipes, the unusable ones, and those that give power away."""
    one, broken = made.source, made.broken
    good = len(made.recipes) - len(broken)
    lines = [f"{one.name}: {counted(good, 'recipe')} at commit {one.commit[:12]}"]
    if broken:
        lines.append(f"{counted(len(broken), 'recipe')} cannot be started as published:")
        lines += _few([f"  {entry.name}: {entry.errors[0].removeprefix(f'{entry.path}: ')}" for entry in broken])
    if noted := [entry.name for entry, _ in made.recipes.values() if entry.notes and not entry.errors]:
        lines.append(f"left out or assumed on import of {_some(noted)}: recipes show {one.name}/NAME lists it")
    if trusted := _trusted(made):
        lines.append("settings that run code or open files on the nodes, once you start such a recipe:")
        lines += _few(trusted)
    lines.append(f"next: sparkwright recipes list --source {one.name}")
    return "\n".join(lines)


def _trusted(made: Snapshot) -> list[str]:
    """A line a setting, with the recipes that have it."""
    who: dict[str, list[str]] = {}
    for entry, _ in made.recipes.values():
        for power in entry.powers:
            who.setdefault(power, []).append(entry.name)
    return [f"  {power}: {_some(names)}" for power, names in sorted(who.items(), key=lambda one: -len(one[1]))]


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{len(names)} recipes, such as {names[0]}"


def _few(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return lines if more <= 0 else [*lines[:_SHOWN], f"  and {more} more: --json shows all"]


def _told(done: int, of: int) -> None:
    """A line on a terminal that counts; nothing elsewhere."""
    if sys.stderr.isatty() and of > 20:
        click.echo(f"\rchecked {done} of {of} recipes", err=True, nl=done == of)


def source_json(one: KeptSource) -> dict[str, Any]:
    return asdict(one)


def snapshot_json(made: Snapshot) -> dict[str, Any]:
    entries = [asdict(entry) for entry, _ in made.recipes.values()]
    return {"schema": 1, "source": source_json(made.source), "recipes": entries}


def _update_json(found: Update) -> dict[str, Any]:
    changed = [asdict(change) for change in found.changes]
    old, new = source_json(found.old.source), source_json(found.new.source)
    return {"old": old, "new": new, "rewritten": found.rewritten, "changes": changed}
