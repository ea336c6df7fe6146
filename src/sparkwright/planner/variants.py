"""A recipe with some of its keys changed, and how such changes are written down."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Variant

_SIZES = ("serving.kv_cache_bytes", "model.size")
_OWN = ("model", "engine", "parallelism", "serving", "speculation", "parsers")


def changed(recipe: Recipe, variant: Variant) -> Recipe:
    """Keys are those of a recipe file; a key of `flags` is an option's name, however the recipe spells it."""
    for key, value in variant.changes:
        section, _, name = key.partition(".")
        if section == "flags":
            recipe = replace(recipe, flags=_flags(recipe.flags, name, value))
        elif section in _OWN and name:
            recipe = replace(recipe, **{section: replace(getattr(recipe, section), **{name: value})})
        else:
            recipe = replace(recipe, **{section: value})
    return recipe


def _flags(given: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    kept = {n: v for n, v in given.items() if n.lstrip("-").replace("_", "-") != name}
    return kept if value is None else {**kept, name: value}


def written(variant: Variant) -> str:
    """In one line: the commands first, each with its nodes, then the keys: `serving.context: 131072, nodes: 4`."""
    nodes: dict[str, list[str]] = {}
    for action in variant.actions:
        nodes.setdefault(action.command, []).append("" if action.deployment else action.node)
    done = [command + (f"   # on {' and '.join(names)}" if all(names) else "") for command, names in nodes.items()]
    keys = ", ".join(f"{key}: {scalar(key, value)}" for key, value in variant.keys.items())
    return "; and ".join([*done, *([keys] if keys else [])])


def yaml_lines(variant: Variant) -> Iterator[str]:
    """The changed keys as they stand in a recipe, ready to paste; sections in the order of their first key."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in variant.keys.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    for section, values in sections.items():
        if "" in values:
            yield f"{section}: {scalar(section, values[''])}"
            continue
        yield f"{section}:"
        yield from (f"  {name}: {scalar(f'{section}.{name}', value)}" for name, value in values.items())


def scalar(key: str, value: Any) -> str:
    """As YAML writes it; sizes that are whole GiB as such, what is taken away as null."""
    if value is None or value == "":
        return "null"
    if key in _SIZES and value and value % GIB == 0:
        return f"{value // GIB} GiB"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
