"""A draft as a recipe file: our keys in the reference's order, what was left out as comments on top."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from sparkwright.recipes.schema import RecipeFile


def recipe_yaml(tree: Mapping[str, Any], source: str, notes: Iterable[str]) -> str:
    listed = [f"#   - {' '.join(note.split())}\n" for note in notes]
    head = f"# Imported from {source}.\n"
    head += "# Left out, assumed, or to be read before it runs:\n" + "".join(listed) if listed else ""
    keys = [key for key in RecipeFile.model_fields if tree.get(key) not in (None, {}, [], "")]
    return head + "".join(_section(key, tree[key]) for key in keys)


def _section(key: str, value: Any) -> str:
    """`key: value`; a mapping or list is separate from what is above it."""
    apart = "\n" if isinstance(value, (Mapping, list)) or key == "name" else ""
    return apart + yaml.safe_dump(
        {key: value}, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
    )
