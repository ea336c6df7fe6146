"""The two halves of a recipe file: its base, and the profiles that can be laid over it."""

from collections.abc import Iterable, Mapping
from typing import Any

from sparkwright.recipes.problems import Complaint
from sparkwright.recipes.values import Matching, shown

_OUTSIDE = ("profiles", "default_profile")
_NOT_IN_PROFILE = frozenset((*_OUTSIDE, "name"))
_NAME = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "letters, digits, `.`, `_` and `-`, as in 256k")

Tree = Mapping[str, Any]


def parts(tree: Tree) -> tuple[dict[str, Any], dict[str, dict[str, Any]], list[Complaint]]:
    """The base, the usable profiles by name, and what is wrong with the profiles as such (not with their keys)."""
    base = {k: v for k, v in tree.items() if k not in _OUTSIDE}
    found = tree.get("profiles")
    wrong: list[Complaint] = []
    if found is not None and not isinstance(found, Mapping):
        wrong += [(("profiles",), f"`profiles`: found {shown(found)}; expected a mapping of profiles by name")]
    written = {k: v for k, v in found.items() if not k.startswith("x-")} if isinstance(found, Mapping) else {}
    for name, over in written.items():
        wrong += _profile(name, over)
    wrong += _default(tree, written)
    return base, {k: _own(v) for k, v in written.items() if isinstance(v, Mapping)}, wrong


def _own(over: Tree) -> dict[str, Any]:
    return {k: v for k, v in over.items() if k not in _NOT_IN_PROFILE}


def _profile(name: str, over: Any) -> Iterable[Complaint]:
    path = ("profiles", name)
    try:
        _NAME.check(name or " ")
    except ValueError as error:
        yield path, f"`profiles`: name of a profile: {error}"
    if not isinstance(over, Mapping):
        wanted = "a mapping of the keys that differ from the base"
        yield path, f"`profiles.{name}`: found {shown(over)}; expected {wanted}"
        return
    for key in sorted(set(over) & _NOT_IN_PROFILE):
        yield (*path, key), f"`profiles.{name}.{key}` is outside the profiles; a profile cannot change it"


def _default(tree: Tree, names: Iterable[str]) -> list[Complaint]:
    default = tree.get("default_profile")
    if default in (None, "", *names):
        return []
    return [(("default_profile",), f"`default_profile`: found {shown(default)}; {existing(names)}")]


def existing(names: Iterable[str]) -> str:
    """`profiles of this recipe: 1m, 256k`."""
    listed = ", ".join(n for n in names if n)
    return f"profiles of this recipe: {listed}" if listed else "this recipe has no profiles"
