"""Our frozen dataclasses as JSON and back: what one version of sparkwright leaves on a node, another may read."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sparkwright.domain.foreign_json import read_json

T = TypeVar("T")


class Unreadable(ValueError):
    """The text is not what `to_json` writes; the message names the place."""


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON of a dataclass without secrets, `encodable`."""
    return encodable(json.dumps(asdict(value), indent=indent, ensure_ascii=False))


def encodable(text: str) -> str:
    """Text that can be written as UTF-8: the halves of characters that models and odd bytes leave become `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def from_json(kind: type[T], text: str | bytes) -> T:
    """Raises Unreadable. Fields that this version does not know are left out; missing ones get their defaults."""
    try:
        tree = read_json(text)
    except ValueError as error:
        raise Unreadable(f"no JSON: {error}") from None
    return from_tree(kind, tree)


def from_tree(kind: type[T], tree: Any) -> T:
    """Builds a value of `kind` from parsed JSON; the text form is `from_json`."""
    made: T = _made(kind, tree, kind.__name__)
    return made


def _made(kind: Any, tree: Any, where: str) -> Any:
    if is_dataclass(kind):
        return _dataclass(kind, tree, where)
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(inside, tree, where)
    if origin is tuple:
        return _tuple(inside, _typed(tree, list, where), where)
    if origin in (Mapping, dict):
        found = _typed(tree, dict, where)
        return {str(key): _made(inside[1], value, f"{where}.{key}") for key, value in found.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(tree)
        except ValueError:
            raise Unreadable(f"{where}: {tree!r} is none of {', '.join(str(one.value) for one in kind)}") from None
    return _plain(kind, tree, where)


def _dataclass(kind: Any, tree: Any, where: str) -> Any:
    found, hints = _with_names_of_today(kind, _typed(tree, dict, where)), _hints(kind)
    given = {name: _made(hint, found[name], f"{where}.{name}") for name, hint in hints.items() if name in found}
    required = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    if missing := sorted(required - set(given)):
        raise Unreadable(f"{where}: {', '.join(missing)} missing")
    return kind(**given)


def _with_names_of_today(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Rename what an earlier version wrote, by the class's FORMER (field -> its name today) and FORMER_VALUES."""
    names: Mapping[str, str] = getattr(kind, "FORMER", {})
    values: Mapping[str, Mapping[Any, Any]] = getattr(kind, "FORMER_VALUES", {})
    found = {names.get(name, name): value for name, value in found.items() if names.get(name) not in found}
    texts = {name: found[name] for name in values if isinstance(found.get(name), str)}
    return found | {name: values[name].get(text, text) for name, text in texts.items()}


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name in {f.name for f in fields(kind)}}


def _union(kinds: tuple[Any, ...], tree: Any, where: str) -> Any:
    if tree is None and NoneType in kinds:
        return None
    errors = []
    for kind in kinds:
        try:
            return _made(kind, tree, where) if kind is not NoneType else _typed(tree, NoneType, where)
        except Unreadable as error:
            errors.append(str(error))
    raise Unreadable(errors[0])


def _tuple(inside: tuple[Any, ...], items: list[Any], where: str) -> tuple[Any, ...]:
    kinds = [inside[0]] * len(items) if inside[-1] is Ellipsis else list(inside)
    if len(kinds) != len(items):
        raise Unreadable(f"{where}: {len(items)} values, not {len(kinds)}")
    return tuple(_made(kind, item, f"{where}[{n}]") for n, (kind, item) in enumerate(zip(kinds, items, strict=True)))


def _plain(kind: Any, tree: Any, where: str) -> Any:
    if kind is Any:
        return tree
    if kind is float and isinstance(tree, int) and not isinstance(tree, bool):
        try:
            return float(tree)
        except OverflowError:
            raise Unreadable(f"{where}: a number of {tree.bit_length()} bits") from None
    return _typed(tree, kind, where)


def _typed(tree: Any, kind: type[T], where: str) -> T:
    if isinstance(tree, kind) and not (kind is int and isinstance(tree, bool)):
        return tree
    raise Unreadable(f"{where}: {type(tree).__name__}, not {kind.__name__}")
