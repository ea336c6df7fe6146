"""sparkrun's `include` and `overrides`: a recipe laid over another one, and settings that hold under a condition."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import yaml

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.importers.draft import Draft
from sparkwright.recipes.yaml_lines import read_yaml

_MOST_DEPTH = 8
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
# What a condition can ask of the machines that sparkwright is for.
_MACHINE = {"vendor": ("nvidia",), "arch": ("sm_121", "sm_121a", "sm121", "12.1"), "gpus_per_node": ("1",)}
_SIZES = {"tp": "tensor_parallel", "pp": "pipeline_parallel", "dp": "data_parallel"}
_ORDERED: Mapping[str, Callable[[float, float], bool]] = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}
Tree = Mapping[str, Any]


def merged(tree: Tree, source: str, beside: Callable[[str], str | None], depth: int = 0) -> Tree:
    """The recipe over the one that it includes. Raises RecipeError: no such file, a circle, a name with a path."""
    if "include" not in tree:
        return tree
    name = str(tree["include"])
    if depth >= _MOST_DEPTH:
        raise RecipeError(f"{source}: include: more than {_MOST_DEPTH} recipes deep, or in a circle, at {name!r}")
    if name.startswith("@") or not _NAME.fullmatch(name):
        hint = "import the recipe that it names first, or copy it next to this file and write its name"
        raise RecipeError(f"{source}: include: {name!r} is in a registry, not in the same folder", hint=hint)
    files = [name] if name.endswith((".yaml", ".yml")) else [f"{name}.yaml", f"{name}.yml"]
    text = next((text for file in files if (text := beside(file)) is not None), None)
    if text is None:
        raise RecipeError(f"{source}: include: {files[0]} is not next to it", hint="put it into the same folder")
    read_yaml(text, files[0])
    base = yaml.safe_load(text)
    if not isinstance(base, Mapping):
        raise RecipeError(f"{files[0]}: is no recipe: a mapping was expected")
    return _over(merged(base, files[0], beside, depth + 1), tree)


def _over(base: Tree, outer: Tree) -> Tree:
    """Mappings key by key, null removes, entries of defaults and env whole, overrides one after the other."""
    found = dict(deepcopy(dict(base)))
    if "model" in outer and outer["model"] != base.get("model"):
        found.pop("metadata", None)
    for key, value in outer.items():
        was = found.get(key)
        if key == "include":
            continue
        if value is None:
            found.pop(key, None)
        elif key == "overrides" and isinstance(was, list) and isinstance(value, list):
            found[key] = [*was, *value]
        elif isinstance(was, Mapping) and isinstance(value, Mapping):
            found[key] = _entries(was, value, whole=key in ("defaults", "env"))
        else:
            found[key] = value
    return found


def _entries(base: Tree, outer: Tree, whole: bool) -> Tree:
    found = dict(base)
    for key, value in outer.items():
        was = found.get(key)
        if value is None:
            found.pop(key, None)
        elif not whole and isinstance(was, Mapping) and isinstance(value, Mapping):
            found[key] = _entries(was, value, whole=False)
        else:
            found[key] = value
    return found


def with_overrides(tree: Tree, draft: Draft) -> Tree:
    """The recipe with the overrides that hold for GB10 nodes as many as it has ranks; each one is noted."""
    found = dict(tree)
    for index, entry in enumerate(tree.get("overrides") or ()):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("when"), Mapping):
            raise RecipeError(f"overrides[{index}]: a mapping with `when` was expected")
        holds = all(_holds(name, wanted, tree) for name, wanted in entry["when"].items())
        draft.note(f"overrides[{index}]: {'taken over, it holds' if holds else 'left out, it does not hold'} for "
                   f"GB10 nodes: {dict(entry['when'])}")  # fmt: skip
        if holds:
            for key in ("defaults", "env"):
                found[key] = {**(found.get(key) or {}), **(entry.get(key) or {})}
            found["container"] = entry.get("container") or found.get("container")
    return found


def _holds(name: str, wanted: Any, tree: Tree) -> bool:
    defaults = tree.get("defaults") or {}
    sizes = {key: defaults.get(long, 1) for key, long in _SIZES.items()}
    if name == "config":
        return isinstance(wanted, Mapping) and all(_test(want, (defaults.get(key),)) for key, want in wanted.items())
    if name == "nodes":
        product = 1
        for size in sizes.values():
            product *= size if isinstance(size, int) else 1
        return _test(wanted, (product,))
    if name in sizes:
        return _test(wanted, (sizes[name],))
    if name == "runtime":
        return _test(wanted, (tree.get("runtime"),))
    return name in _MACHINE and _test(wanted, _MACHINE[name])


def _test(wanted: Any, values: tuple[Any, ...]) -> bool:
    """A value, a list of values, or a mapping of operators; what is not known holds for nothing."""
    actual = {str(value).lower() for value in values if value is not None}
    if isinstance(wanted, Mapping):
        return all(_operator(name, operand, values, actual) for name, operand in wanted.items())
    listed = wanted if isinstance(wanted, list) else [wanted]
    return bool(actual & {str(one).lower() for one in listed})


def _operator(name: str, operand: Any, values: tuple[Any, ...], actual: set[str]) -> bool:
    listed = {str(one).lower() for one in (operand if isinstance(operand, list) else [operand])}
    if name in ("eq", "in"):
        return bool(actual & listed)
    if name in ("ne", "not_in"):
        return not actual & listed
    value = values[0]
    numbers = isinstance(value, int | float) and isinstance(operand, int | float)
    return name in _ORDERED and numbers and _ORDERED[name](float(value), float(operand))
