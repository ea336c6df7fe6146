"""Other tools' recipes -> ours: sparkrun's and vLLM's, recognised by their keys."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import yaml

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass
from sparkwright.recipes.importers.draft import Draft, ImportOptions, note_pointers, slug
from sparkwright.recipes.importers.sparkrun import from_sparkrun, is_sparkrun
from sparkwright.recipes.importers.vllm_recipes import from_vllm, is_vllm
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.schema import RecipeFile
from sparkwright.recipes.yaml_lines import read_yaml

FORMATS = "sparkrun (`model`, `defaults`, `command`) and vLLM recipes (`model.model_id`, `variants`)"


@dataclass(frozen=True, slots=True)
class Imported:
    """text: the recipe file. notes: what was left out or assumed. errors: why it does not load yet, one a line."""

    name: str
    text: str
    notes: tuple[str, ...]
    errors: tuple[str, ...]


def import_recipe(text: str, source: str, options: ImportOptions) -> Imported:
    """source: the file's name as messages show it. Raises RecipeError for what is neither YAML nor a known format."""
    draft, kind = _read(_mapping(text, source), source, options)
    name = options.name or draft.get("name") or slug(PurePath(source).stem) or "imported"
    note_pointers(draft)
    draft.put("name", name)
    draft.put("state", "documented")
    draft.put("state_reason", f"imported from {PurePath(source).name} ({kind}); not served by us")
    draft.put("title", draft.get("title", name))
    written, errors = recipe_yaml(draft.tree, f"{PurePath(source).name} ({kind})", draft.notes), ""
    try:
        load_recipe(written, f"{name}.yaml")
    except RecipeError as error:
        errors = error.message
    return Imported(name, written, tuple(draft.notes), tuple(errors.splitlines()))


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


def _read(tree: Mapping[str, Any], source: str, options: ImportOptions) -> tuple[Draft, str]:
    try:
        if is_vllm(tree):
            return from_vllm(tree, options), "vLLM recipe"
        if is_sparkrun(tree):
            version = str(tree.get("recipe_version", "2"))
            return from_sparkrun(tree, options), f"sparkrun recipe, version {version}"
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        why = f"a key holds another kind of value than its format has ({error})"
        raise RecipeError(f"{source}: {why}", hint="check the file against its own tool") from None
    raise RecipeError(f"{source}: is in no format that can be imported", hint=f"known formats: {FORMATS}")


def recipe_yaml(tree: Mapping[str, Any], source: str, notes: Iterable[str]) -> str:
    listed = [f"#   - {' '.join(note.split())}\n" for note in notes]
    head = f"# Imported from {source}.\n"
    head += "# Left out, assumed, or to be read before it runs:\n" + "".join(listed) if listed else ""
    for key in RecipeFile.model_fields:
        if (value := tree.get(key)) not in (None, {}, [], ""):
            # A mapping or list is separate from what is above it.
            head += "\n" if isinstance(value, (Mapping, list)) or key == "name" else ""
            head += yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True, width=110)
    return head
