"""Imports of owners' existing files as recipes: the format is recognised by its keys and its first line."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import yaml

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass
from sparkwright.recipes.importers.compose import from_compose, is_compose
from sparkwright.recipes.importers.container import inspected, put_container
from sparkwright.recipes.importers.draft import Draft, ImportOptions, note_pointers, recipe_slug
from sparkwright.recipes.importers.lines import from_script, from_unit, is_unit
from sparkwright.recipes.importers.mods import put_mods
from sparkwright.recipes.importers.shell import MOST_CHARACTERS
from sparkwright.recipes.importers.sparkrun import from_sparkrun, is_sparkrun
from sparkwright.recipes.importers.vllm_recipes import from_vllm, is_vllm
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.schema import RecipeFile
from sparkwright.recipes.yaml_lines import read_yaml

FORMATS = (
    "recipes of sparkrun and vLLM, Compose files, `docker inspect`, systemd units, a docker run, vllm serve, "
    "sglang.launch_server, trtllm-serve or llama-server line, and scripts with one of these"
)


Beside = Callable[[str], str | None]
Folder = Callable[[str], Mapping[str, str] | None]


def nothing_beside(name: str) -> None:
    """The lookup for a text that stands alone, as standard input does: there is no file beside it."""


@dataclass(frozen=True, slots=True)
class Imported:
    """text: the recipe file. notes: what was left out or assumed. errors: why it does not load yet, one a line."""

    name: str
    text: str
    notes: tuple[str, ...]
    errors: tuple[str, ...]


def import_recipe(
    text: str, source: str, options: ImportOptions, beside: Beside = nothing_beside, folder: Folder = nothing_beside
) -> Imported:
    """source: the file's name as messages show it. beside: text of a file in the same folder, None if there is none.

    folder: path -> content of all files of a mod's folder; binary content is `base64:...`.

    Raises RecipeError for what is in no known format, or holds what only a shell or another tool could know.
    """
    draft, kind = _read(text, source, options, beside)
    put_mods(draft, folder)
    name = options.name or draft.get("name") or recipe_slug(PurePath(source).stem) or "imported"
    note_pointers(draft)
    draft.put("name", name)
    draft.put("state", "documented")
    draft.put("state_reason", f"imported from {PurePath(source).name} ({kind}); not served by us")
    draft.put("title", draft.get("title") or draft.get("model.id") or draft.get("model.path") or name)
    written, errors = recipe_yaml(draft.tree, f"{PurePath(source).name} ({kind})", draft.notes), ""
    try:
        load_recipe(written, f"{name}.yaml")
    except RecipeError as error:
        errors = "\n".join((error.message, *_holes(draft)))
    return Imported(name, written, tuple(draft.notes), tuple(errors.splitlines()))


def _holes(draft: Draft) -> Iterator[str]:
    """The variables or holes that stand for the model and the image, where the source does not give them a value."""
    model = draft.get("model.id") or draft.get("model.path")
    wanted = ("engine.image: ",) if model else ("model: ", "engine.image: ")
    yield from (note for note in draft.notes if note.startswith(wanted) and "has no value" in note)


def _read(text: str, source: str, options: ImportOptions, beside: Beside) -> tuple[Draft, str]:
    if len(text) > MOST_CHARACTERS:
        raise RecipeError(f"{source}: {len(text)} characters; at most {MOST_CHARACTERS} are read", hint="cut it")
    file = PurePath(source).name
    try:
        if text.lstrip()[:1] == "[" and is_unit(text):
            return from_unit(text, file, options, beside), "systemd unit"
        if text.lstrip()[:1] in ("[", "{") and (rows := _json(text)) is not None:
            draft = Draft()
            put_container(draft, inspected(rows, file), file, options)
            return draft, "docker inspect"
        if is_unit(text):
            return from_unit(text, file, options, beside), "systemd unit"
        if not _is_command(text):
            return _from_tree(_mapping(text, source), source, options, beside)
        return from_script(text, file, options, beside), "command line"
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        why = f"a key holds another kind of value than its format has ({error})"
        raise RecipeError(f"{source}: {why}", hint="check the file against its own tool") from None


def _json(text: str) -> list[Any] | None:
    """Rows of `docker inspect`; None for anything else."""
    try:
        found = read_json(text)
    except ValueError:
        return None
    rows = found if isinstance(found, list) else [found]
    return rows if any(isinstance(row, dict) and "HostConfig" in row for row in rows) else None


def _is_command(text: str) -> bool:
    """True if its first meaningful line is a shell's and no key of YAML."""
    if text.startswith("#!"):
        return True
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    first = next(lines, "")
    return not re.match(r"\s*(?:[\w.\"'-]+\s*:(?:\s|$)|- |\[|\{|---|%|- $|-$)", first)


def _mapping(text: str, source: str) -> Mapping[str, Any]:
    read_yaml(text, source)  # for its limits of depth and aliases, and its messages with line and column
    try:
        # As the other tools read it: with PyYAML `on` is true, and a date that is none raises ValueError.
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise RecipeError(f"{source}: is no YAML: {' '.join(str(error).split())}", hint="check the file") from None
    if isinstance(tree, Mapping):
        return tree
    raise RecipeError(f"{source}: is no recipe: a mapping was expected", hint=f"known formats: {FORMATS}")


def _from_tree(tree: Mapping[str, Any], source: str, options: ImportOptions, beside: Beside) -> tuple[Draft, str]:
    file = PurePath(source).name
    if is_vllm(tree):
        return from_vllm(tree, options), "vLLM recipe"
    if is_compose(tree):
        return from_compose(tree, file, options, beside), "Compose file"
    if is_sparkrun(tree):
        version = str(tree.get("recipe_version", "2"))
        return from_sparkrun(tree, file, options, beside), f"sparkrun recipe, version {version}"
    if isinstance(tree.get("engine"), Mapping) and isinstance(tree.get("model"), Mapping):
        hint = f"sparkwright recipes validate {source}"
        raise RecipeError(f"{source}: is a recipe of sparkwright already", hint=hint)
    raise RecipeError(f"{source}: is in no format that can be imported", hint=f"known formats: {FORMATS}")


_LIKE_A_NUMBER = re.compile(r"[-+]?(?:[\d_]+\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?|0[xob]\w+|[-+]?\d[\d_:]*(?:\.\d*)?")


class _Dumper(yaml.SafeDumper):
    """Quotes texts that look like numbers to any reader: `1e-5` is text for PyYAML, and a number for ours."""


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "'" if _LIKE_A_NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def recipe_yaml(tree: Mapping[str, Any], source: str, notes: Iterable[str]) -> str:
    listed = [f"#   - {' '.join(note.split())}\n" for note in notes]
    head = f"# Imported from {source}.\n"
    head += "# Left out, assumed, or to be read before it runs:\n" + "".join(listed) if listed else ""
    for key in RecipeFile.model_fields:
        if (value := tree.get(key)) not in (None, {}, [], ""):
            # A mapping or list is separate from what is above it.
            head += "\n" if isinstance(value, (Mapping, list)) or key == "name" else ""
            head += yaml.dump({key: value}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return head
