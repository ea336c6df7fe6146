"""TOML text -> EngineDefinition: every mistake with file and line."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import replace
from sparkwright.engines.catalog import ENGINES
from sparkwright.recipes.engine_schema import BuiltInPart, DefinitionPart, definition_complaints
from sparkwright.recipes.problems import Complaint, report, valid_keys, validated
from sparkwright.recipes.values import domain_value, shown_value
from sparkwright.recipes.yaml_lines import Document, Path, Problem

MOST_CHARS = 512 * 1024
HINT = "docs/guides/adding-an-engine.md explains every key"
Texts = tuple[tuple[str, str], ...]  # (file as messages name it, its text)
_HEADER = re.compile(r"\s{0,40}(\[\[?)\s{0,10}([\w.\"' -]{1,200}?)\s{0,10}\]")
_KEY = re.compile(r"\s{0,40}([\w.\"'-]{1,200}?)\s{0,40}=")


@lru_cache(maxsize=64)
def read_engine(text: str, source: str, built_in: bool = False) -> EngineDefinition:
    """The definition in a file. Raises RecipeError: one line per mistake, each beginning with `FILE:LINE:`.

    built_in: a module renders the engine's ranks, so that it has no command, and its log's patterns are our own.
    """
    document, schema = _document(text, source), BuiltInPart if built_in else DefinitionPart
    part, found = validated(document.value, schema, valid_keys(schema))
    complaints: list[Complaint] = list(found)
    made: EngineDefinition | None = domain_value(EngineDefinition, part.model_dump()) if part else None
    if made:
        complaints += definition_complaints(made, built_in=built_in)
        if (not built_in and made.name in ENGINES) or made.name == "custom":
            complaints.append(
                (("name",), f"`name`: {shown_value(made.name)} is an engine of sparkwright's own: take another")
            )
    if made is None or complaints:
        problems = [Problem(document.line(path), _in_toml(text)) for path, text in complaints]
        raise RecipeError(report(problems, source), hint=HINT)
    return replace(made, source=source)


def _in_toml(text: str) -> str:
    """A complaint with the form of TOML where it shows YAML's."""
    text = text.replace("a list, one `- item` a line", 'a list, as in ["one", "two"]')
    return text.replace("a mapping, one `key: value` a line", 'a table, as in { key = "value" }')


def find_engine(name: str, files: Texts) -> EngineDefinition | None:
    """The definition of that name among files. Raises RecipeError where the file that should have it is broken."""
    for source, text in files:
        if PurePath(source).stem == name:
            return read_engine(text, source)
    for source, text in files:
        try:
            made = read_engine(text, source)
        except RecipeError:
            continue
        if made.name == name:
            return made
    return None


def _document(text: str, source: str) -> Document:
    if len(text) > MOST_CHARS:
        raise RecipeError(f"{source}: larger than {MOST_CHARS} characters", hint=HINT)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d{1,9})", str(error))
        line = found[1] if found else str(text.count("\n") + 1)
        raise RecipeError(f"{source}:{line}: this is not TOML: {error}; texts need quotes", hint=HINT) from None
    except RecursionError:
        raise RecipeError(f"{source}:1: nested too deeply", hint=HINT) from None
    return Document(_plain(tree), lines_of(text))


def _plain(value: Any) -> Any:
    """Dates, which no key of ours takes, as text."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool) else str(value)


def lines_of(text: str) -> Mapping[Path, int]:
    """Path of a key or table -> its line, as far as lines show it: what stands inside a value has the value's line."""
    lines: dict[Path, int] = {(): 1}
    counts: dict[Path, int] = {}
    here: Path = ()
    quotes = ""
    for number, line in enumerate(text.splitlines(), 1):
        if quotes:
            quotes = "" if line.count(quotes) % 2 else quotes
            continue
        if header := _HEADER.match(line):
            here = _split(header[2])
            if header[1] == "[[":
                counts[here] = counts.get(here, -1) + 1
                here = (*here, counts[here])
            lines.setdefault(here, number)
        elif key := _KEY.match(line):
            lines.setdefault((*here, *_split(key[1])), number)
        for mark in ('"""', "'''"):
            quotes = mark if line.count(mark) % 2 else quotes
    return lines


def _split(dotted: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def problems_in(files: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """File -> what is wrong with it, of those that cannot be used."""
    found = {}
    for source, text in files:
        try:
            read_engine(text, source)
        except RecipeError as error:
            found[source] = error.message
    return found
