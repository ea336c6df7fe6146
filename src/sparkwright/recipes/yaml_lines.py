"""YAML text -> plain values that remember how and on which line they were written.

Scalars follow YAML 1.2: only `true` and `false` are booleans, so that `flash-attn: on` stays the text `on` and
`1:30` stays text. Numbers keep their text (`version: 0.20` must not become 0.2).
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass

Path = tuple[str | int, ...]

MAX_CHARS = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 50

_STR, _INT, _FLOAT = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_BOOL, _NULL, _MERGE = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"
_PLAIN = (
    (_BOOL, r"true|True|TRUE|false|False|FALSE", "tTfF"),
    (_INT, r"[-+]?[0-9][0-9_]*|0x[0-9a-fA-F]+", "-+0123456789"),
    (_FLOAT, r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+\.", "-+0123456789."),
    (_NULL, r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_MERGE, r"<<", "<"),
)


class WrittenInt(int):
    """A whole number with the text it was written as."""

    text: str


class WrittenFloat(float):
    """A number with the text it was written as."""

    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file; line counts from 1, text is one line."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """value: dicts, lists, scalars. lines: path of a key or item -> its line. problems: what did not stop reading."""

    value: Any
    lines: Mapping[Path, int]
    problems: tuple[Problem, ...] = ()

    def line(self, path: Path) -> int:
        """The line of a path, or of the nearest parent that is written."""
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 1)


class _Loader(yaml.SafeLoader):
    """SafeLoader's scanner and composer with YAML 1.2 scalars; it is never asked to construct objects."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own hook)


for _tag, _pattern, _first in _PLAIN:
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), list(_first))


def read_yaml(text: str, source: str) -> Document:
    """Reads one YAML document. Raises RecipeError (`FILE:LINE:COLUMN: ...`) when it is no YAML."""
    if len(text) > MAX_CHARS:
        raise RecipeError(f"{source}:1: the file has {len(text)} characters; allowed are {MAX_CHARS}")
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text, source) from None
    except yaml.reader.ReaderError as error:
        raise _unreadable(error, text, source) from None
    except RecursionError:
        raise RecipeError(f"{source}:1: nested too deeply to be read") from None
    return _Reader(source).document(node)


def _syntax(error: yaml.MarkedYAMLError, text: str, source: str) -> RecipeError:
    """The error of bad YAML, with the usual mistake in such a line."""
    mark = error.problem_mark or error.context_mark
    number, column = (mark.line, mark.column) if mark else (0, 0)
    line = "".join(text.splitlines()[number : number + 1])
    hint = "check the indentation, the colon and the quotes of this line and of the one before"
    if "\t" in line[: len(line) - len(line.lstrip())]:
        hint = "indent with spaces, not with tabs"
    elif re.search(r":\s+[@%`*&!|>]", line) or line.count(": ") > 1:
        hint = "put the value in quotes"
    return RecipeError(f"{source}:{number + 1}:{column + 1}: this is no YAML: {error.problem or error.context}; {hint}")


def _unreadable(error: yaml.reader.ReaderError, text: str, source: str) -> RecipeError:
    before = text[: error.position]
    line, column = before.count("\n") + 1, error.position - before.rfind("\n")
    code = error.character if isinstance(error.character, int) else ord(error.character)
    return RecipeError(f"{source}:{line}:{column}: character U+{code:04X} is not allowed in YAML; remove it")


class _Reader:
    """Turns composed nodes into values, noting lines; aliases are expanded, up to MAX_NODES in all."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self.open: list[yaml.Node] = []
        self.count = 0

    def document(self, node: yaml.Node | None) -> Document:
        try:
            value = None if node is None else self.value(node, ())
        except RecursionError:
            raise RecipeError(f"{self.source}:1: nested too deeply to be read") from None
        return Document(value, self.lines, tuple(self.problems))

    def value(self, node: yaml.Node, path: Path) -> Any:
        self._guard(node)
        self.open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                self.lines |= {(*path, index): _line(item) for index, item in enumerate(node.value)}
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._scalar(node.tag, str(node.value), _line(node))
        finally:
            self.open.pop()

    def _guard(self, node: yaml.Node) -> None:
        self.count += 1
        where = f"{self.source}:{_line(node)}"
        if any(node is parent for parent in self.open):
            raise RecipeError(f"{where}: an alias (`*name`) that contains itself")
        if len(self.open) > MAX_DEPTH:
            raise RecipeError(f"{where}: nested deeper than {MAX_DEPTH} levels")
        if self.count > MAX_NODES:
            raise RecipeError(f"{where}: more than {MAX_NODES} values once aliases (`*name`) are expanded")

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = _line(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(line, "a key must be one word, not a list or mapping"))
                continue
            if key_node.tag == _MERGE:
                continue
            key = str(key_node.value)
            if key in first:
                text = f"key `{dotted((*path, key))}` is there twice: on line {first[key]} and on line {line}"
                self.problems.append(Problem(line, text))
                continue
            first[key] = self.lines[(*path, key)] = line
            found[key] = self.value(value_node, (*path, key))
        return self._merged(node, path) | found

    def _merged(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        """The keys that `<<: *name` adds; written keys win."""
        merged: dict[str, Any] = {}
        values = [value for key, value in node.value if key.tag == _MERGE]
        for source in (one for value in values for one in _items(value)):
            if isinstance(source, yaml.MappingNode):
                merged = self.value(source, path) | merged
            else:
                self.problems.append(Problem(_line(source), "`<<` takes an alias of a mapping, as in `<<: *common`"))
        return merged

    def _scalar(self, tag: str, text: str, line: int) -> Any:
        if tag in (_STR, _MERGE):
            return text
        if tag == _NULL:
            return None
        if tag == _BOOL:
            return text.lower() == "true"
        if tag not in (_INT, _FLOAT):
            word = tag.replace("tag:yaml.org,2002:", "!!")
            self.problems.append(Problem(line, f"tag `{word}` is not used here; write the plain value"))
            return text
        try:
            number = _parse_number(tag, text)
        except ValueError:
            self.problems.append(Problem(line, f"`{text[:20]}` is no number that can be used"))
            return None
        number.text = text
        return number


def _parse_number(tag: str, text: str) -> WrittenInt | WrittenFloat:
    if tag == _INT:
        return WrittenInt(int(text, 16)) if text.startswith("0x") else WrittenInt(text.replace("_", ""))
    number = WrittenFloat(text.replace("_", ""))
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _items(node: yaml.Node) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else [node]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1 if node.start_mark else 1


def dotted(path: Path) -> str:
    """`serving.port`, `published[0].value`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
