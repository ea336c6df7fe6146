"""Pydantic's errors as text: key path, found, allowed, why, and the nearest valid key."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sparkwright.recipes.values import is_secret_name, shown_value
from sparkwright.recipes.vocabulary import suggest
from sparkwright.recipes.yaml_lines import Document, Path, Problem, dotted

Complaint = tuple[Path, str]
"""A path in the file and what is wrong there (without the path)."""

_WANTED = {
    "int_type": "one whole number",
    "int_from_float": "one whole number",
    "float_type": "one number",
    "string_type": "one text",
    "bool_type": "true or false",
    "list_type": "a list, one `- item` a line",
    "dict_type": "a mapping, one `key: value` a line",
    "model_type": "a mapping, one `key: value` a line",
}


Section = TypeVar("Section", bound=BaseModel)


def validated(tree: Any, model: type[Section], keys: tuple[str, ...]) -> tuple[Section | None, tuple[Complaint, ...]]:
    """The validated section and all complaints. With complaints it lacks what they are about; None if that is too much.

    keys: all valid paths, for suggestions.
    """
    try:
        return model.model_validate(tree), ()
    except ValidationError as error:
        found = tuple(_complaint(detail, keys) for detail in error.errors(include_url=False))

    def backwards(path: Path) -> tuple[tuple[str, int], ...]:
        """Sort key that puts later list items first, so that the numbers of the others stay right while items are taken
        out."""
        return tuple(("", -part) if isinstance(part, int) else (part, 0) for part in path)

    rest = tree
    for path in sorted({path for path, _ in found}, key=backwards):
        rest = _without(rest, path)
    try:
        return model.model_validate(rest), found
    except ValidationError:
        return None, found


def _complaint(detail: ErrorDetails, keys: tuple[str, ...]) -> Complaint:
    path = tuple(part for part in detail["loc"] if part != "[key]")
    kind = detail["type"]
    if kind == "extra_forbidden":
        return path, _unknown_key(path, keys)
    if kind == "missing":
        return path, f"`{dotted(path)}` is missing; it has no default"
    if kind == "value_error":
        return path, f"`{dotted(path)}`: {detail['ctx']['error']}"
    why = detail["msg"]
    if kind == "literal_error":
        why = f"allowed: {detail['ctx']['expected'].replace(chr(39), '')}"
    elif kind in _WANTED:
        why = f"expected {_WANTED[kind]}{_advice(kind, detail['input'], path)}"
    secret = any(is_secret_name(str(part)) for part in path)
    return (
        path,
        f"`{dotted(path)}`: found {'a value that is not shown' if secret else shown_value(detail['input'])}; {why}",
    )


def _advice(kind: str, value: Any, path: Path) -> str:
    """The advice on a common mistake."""
    if kind == "bool_type" and str(value).lower() in ("yes", "no", "on", "off"):
        return f"; write {'true' if str(value).lower() in ('yes', 'on') else 'false'}"
    if isinstance(value, list):
        if kind not in ("dict_type", "model_type"):
            return "; write a single value, not a list"
        flags = "; write `name: value` without dashes, as in `block-size: 256` (true for a bare flag)"
        return flags if path[:1] == ("flags",) else "; write `name: value` lines without `-`"
    if isinstance(value, str) and kind in ("int_type", "float_type") and value.strip():
        return "; write it without quotes, units or line breaks"
    return ""


def _unknown_key(path: Path, keys: tuple[str, ...]) -> str:
    """``unknown key `a.b`; did you mean `c.d`?`` or what is known there; keys: all valid paths."""
    section = dotted(tuple(p for p in path[:-1] if isinstance(p, str)))
    near = suggest(str(path[-1]), section, keys)
    prefix = f"{section}." if section else ""
    siblings = [k.removeprefix(prefix) for k in keys if k.startswith(prefix) and "." not in k.removeprefix(prefix)]
    if prefix and near.startswith(prefix):
        near = dotted((*path[:-1], near.removeprefix(prefix)))
    if near:
        return f"unknown key `{dotted(path)}`; did you mean `{near}`?"
    if not siblings:
        return f"unknown key `{dotted(path)}`"
    return f"unknown key `{dotted(path)}`; known here: {', '.join(siblings)}, and keys that begin with x-"


def valid_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Every key path of a model: `serving`, `serving.port`, ..."""

    def walk(section: type[BaseModel], prefix: str) -> Iterator[str]:
        for name, info in section.model_fields.items():
            yield f"{prefix}{name}"
            for inner in _models(info.annotation):
                yield from walk(inner, f"{prefix}{name}.")

    return tuple(walk(model, ""))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections in an annotation: itself, or inside `X | None` and `list[X]`; in a mapping their names are free."""
    if get_origin(annotation) is dict:
        return
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _without(tree: Any, path: Path) -> Any:
    """A copy of a tree without the value at a path."""
    if not path:
        return tree
    head, rest = path[0], path[1:]
    if isinstance(tree, Mapping) and head in tree:
        return {k: _without(v, rest) if k == head else v for k, v in tree.items() if k != head or rest}
    if isinstance(tree, list):
        return [_without(v, rest) if i == head else v for i, v in enumerate(tree) if i != head or rest]
    return tree


def problems_of(document: Document, complaints: Iterable[Complaint]) -> list[Problem]:
    """The problems that did not stop the reading of a file, and the complaints about its keys with their lines."""
    return [*document.problems, *(Problem(document.line(path), text) for path, text in complaints)]


def report(problems: Iterable[Problem], source: str) -> str:
    """All problems, in the order of their lines, one a line, each once."""
    lines: dict[str, int] = {}
    for one in problems:
        # Keys of a file can hold anything, also line breaks and terminal sequences.
        text = " ".join("".join(c if c.isprintable() else " " for c in one.text).split())
        lines[f"{source}:{one.line}: {text}"] = one.line
    return "\n".join(sorted(lines, key=lambda text: lines[text]))


_FREE = (("flags",), ("speculation", "options"))


def overlay(base: Any, over: Any) -> Any:
    """The overlay of `over` upon `base`: neither is changed."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    return dict(base) | {key: overlay(base.get(key), value) for key, value in over.items()}


def drop_unset(tree: Any, path: tuple[str, ...] = ()) -> Any:
    """Drops keys that begin with `x-` and keys whose value is null (their default holds).

    What is inside a flag's or a speculation option's value is the engine's, not ours: it is not changed.
    """
    if isinstance(tree, list):
        return [drop_unset(item, path) for item in tree]
    if not isinstance(tree, Mapping):
        return tree
    kept = {k: v for k, v in tree.items() if v is not None and not k.startswith("x-")}
    return kept if path in _FREE else {k: drop_unset(v, (*path, k)) for k, v in kept.items()}
