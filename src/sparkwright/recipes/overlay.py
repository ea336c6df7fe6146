"""Profiles: a profile lies over the base. Mappings merge deep, lists and scalars replace, null removes."""

from collections.abc import Mapping
from typing import Any

_FREE = (("flags",), ("speculation", "options"))


def overlay(base: Any, over: Any) -> Any:
    """`over` laid upon `base`: neither is changed."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    return dict(base) | {key: overlay(base.get(key), value) for key, value in over.items()}


def clean(tree: Any, path: tuple[str, ...] = ()) -> Any:
    """Drops keys that begin with `x-` and keys whose value is null (their default holds).

    What is inside a flag's or a speculation option's value is the engine's, not ours: it is not changed.
    """
    if isinstance(tree, list):
        return [clean(item, path) for item in tree]
    if not isinstance(tree, Mapping):
        return tree
    kept = {k: v for k, v in tree.items() if v is not None and not k.startswith("x-")}
    return kept if path in _FREE else {k: clean(v, (*path, k)) for k, v in kept.items()}
