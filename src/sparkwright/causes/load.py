"""The families' TOML files as values. Strict: an error names file and line."""

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.causes.cause import LogCause
from sparkwright.domain.finding import Severity
from sparkwright.domain.values import dataclass
from sparkwright.engines.progress import CONDITIONS
from sparkwright.logscan.book import Needs
from sparkwright.logscan.literals import required
from sparkwright.logscan.sign import ANYWHERE, CERTAIN, HINT, LIKELY, POSSIBLE, Sign

CONFIDENCE = {"certain": CERTAIN, "likely": LIKELY, "possible": POSSIBLE, "hint": HINT}
WITHIN = 4  # lines, where `near` names no distance
_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9.]+)+").fullmatch
_TEXTS: Mapping[str, Callable[[str], object]] = {
    "code": re.compile(r"L[A-Z]{3}\d{3}").fullmatch,
    "key": _KEY,
    "title": re.compile(r".*[^.]").fullmatch,
    "severity": re.compile("|".join(Severity)).fullmatch,
    "why": bool,
    "status": re.compile("stable|preview").fullmatch,
}
_LISTS: Mapping[str, Callable[[str], object]] = {
    "fires": bool,
    "silent": bool,
    "fix": re.compile(r"([^{}]|\{\{|\}\}|\{\w+\})+").fullmatch,
    "see": re.compile(r"https?://\S+").fullmatch,
    "consequences": _KEY,
}
_NEEDED = ("code", "key", "title", "severity", "why", "fires", "silent")
_MORE = ("times", "unless", "above", *CONDITIONS)
_FORMS = {"line": _MORE, "near": ("within", *_MORE), "anywhere": _MORE}
_DETAILS = {"within": int, "times": int, "unless": str}
_NUMBER = re.compile(r"0\.\d\d?").fullmatch
_HEADER = re.compile(r"^\[\[cause\]\]", re.MULTILINE)
_BREAK = re.compile(r"\n *")
_SHOWN = 24  # characters of a text by which its line is found

NEEDS = Path(__file__).with_name("needs.json")


class _Wrong(Exception):
    """A mistake in a file; where: a pattern that finds its line."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(what)
        self.where = where


@dataclass(frozen=True, slots=True)
class _Table:
    """One cause as it was parsed; block: which one of its file, from 0."""

    file: str
    source: str
    block: int
    family: str
    values: Mapping[str, Any]

    def place(self, where: str) -> str:
        """File and line: of the pattern, or of the cause's header."""
        starts = [match.start() for match in _HEADER.finditer(self.source)] + [len(self.source)]
        first, end = starts[self.block : self.block + 2]
        match = re.compile(where, re.MULTILINE).search(self.source, first, end)
        return f"{self.file}:{1 + self.source.count(chr(10), 0, match.start() if match else first)}"


@cache
def families() -> Mapping[str, tuple[LogCause, ...]]:
    """The shipped families: name -> causes. Patterns are compiled when a log first needs them; the tests check them
    all."""
    return read(Path(__file__).parent)


@cache
def whole_log() -> Mapping[str, LogCause]:
    """Code -> cause, of those that only a whole log shows: they have no signatures and no examples."""
    tables = _tables(Path(__file__).parent / "whole_log" / "causes.toml")
    return {table.values["code"]: _cause(table.values, signed=False) for table in tables}


def read(folder: Path, patterns: bool = False) -> dict[str, tuple[LogCause, ...]]:
    """The causes of a folder's files by family, in the order of the files' names. patterns: check them, too (seconds).

    Raises ValueError: `FILE:LINE: what is wrong`.
    """
    tables = [table for path in sorted(folder.glob("*.toml")) for table in _tables(path)]
    keys = {str(table.values.get("key")) for table in tables} | {cause.key for cause in whole_log().values()}
    found: dict[str, LogCause] = {}
    for table in tables:
        try:
            cause = _cause(table.values)
            _known("cause", cause.consequences, keys, "")
            if cause.code in found:
                raise _Wrong(f"{cause.code} is another cause's code", "^code")
            _check_patterns(cause.signatures if patterns else ())
        except _Wrong as wrong:
            raise ValueError(f"{table.place(wrong.where)}: {wrong}") from None
        found[cause.code] = cause
    return {
        name: tuple(found[table.values["code"]] for table in tables if table.family == name)
        for name in dict.fromkeys(table.family for table in tables)
    }


def _tables(path: Path) -> Iterator[_Table]:
    source = path.read_text(encoding="utf-8")
    try:
        tree = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise ValueError(f"{path.name}:{line[1] if line else source.count(chr(10))}: {error}") from None
    if {name: type(value) for name, value in tree.items()} != {"family": str, "cause": list}:
        raise ValueError(f"{path.name}:1: expected family and [[cause]], found {', '.join(tree)}")
    for block, values in enumerate(tree["cause"]):
        yield _Table(path.name, source, block, tree["family"], values)


def _cause(values: Mapping[str, Any], signed: bool = True) -> LogCause:
    levels = [key for key in values if key in CONFIDENCE or _NUMBER(key)]
    _known("key", values, (*_TEXTS, *_LISTS, *levels, *CONFIDENCE))
    missing = [key for key in (_NEEDED if signed else _NEEDED[:-2]) if not values.get(key)]
    if missing or bool(levels) != signed:
        raise _Wrong(f"no {', '.join(missing or ['signature'])}")
    texts: dict[str, Any] = {key: _text(key, values[key], good) for key, good in _TEXTS.items() if key in values}
    lists: dict[str, Any] = {key: _texts(key, values[key], good) for key, good in _LISTS.items() if key in values}
    texts |= {"why": " ".join(texts["why"].split()), "severity": Severity(texts["severity"])}
    if not (lists.get("fix") or texts["severity"] is Severity.INFO):
        raise _Wrong("no fix")
    signatures = tuple(_signature(key, value) for key in levels for value in _list(key, values[key]))
    return LogCause(signatures=signatures, **texts, **lists)


def _known(kind: str, names: Iterable[str], known: Collection[str], before: str = r"^['\"]?") -> None:
    """Raises _Wrong for a name that is not known; before: what is in front of it in its line."""
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise _Wrong(
                f"unknown {kind} {name!r}{f'; did you mean {near[0]!r}?' if near else ''}", before + re.escape(name)
            )


def _text(key: str, value: Any, good: Callable[[str], object] = bool) -> Any:
    if not isinstance(value, str):
        raise _Wrong(f"{key} must be a text", rf"\b{key}\b")
    if not good(value):
        raise _Wrong(f"{key} cannot be {value!r}", re.escape(value.split("\n")[0][:_SHOWN]))
    return value


def _list(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _Wrong(f"{key} must be a list", rf"\b{key}\b")
    return value


def _texts(key: str, value: Any, good: Callable[[str], object] = bool) -> tuple[str, ...]:
    return tuple([_text(key, item, good) for item in _list(key, value)])


def _signature(level: str, value: Any) -> Sign:
    """A pattern, or a table of them with details."""
    sure = CONFIDENCE.get(level) or float(level)
    if isinstance(value, str):
        return Sign((_unbroken(value),), sure)
    form = next((form for form in _FORMS if isinstance(value, dict) and form in value), "")
    if not form:
        raise _Wrong(f"{level}: expected a pattern, or a table with {', '.join(_FORMS)}", rf"^['\"]?{level}")
    _known(f"key in {level}:", value, (form, *_FORMS[form]), r"\b")
    details = {key: value[key] for key in _DETAILS if key in value}
    for key, given in ((key, given) for key, given in details.items() if type(given) is not _DETAILS[key]):
        raise _Wrong(f"{key} cannot be {given!r}", rf"\b{key} = {given!r}")
    if form != "line":
        details.setdefault("within", ANYWHERE if form == "anywhere" else WITHIN)
    patterns = tuple(map(_unbroken, _texts(form, [value[form]] if form == "line" else value[form])))
    if form != "line" and len(patterns) < 2:
        raise _Wrong(f"{form} needs two patterns or more", rf"\b{form} =")
    asked = {key: [value[key]] if isinstance(value[key], str) else value[key] for key in CONDITIONS if key in value}
    above = _texts("above", value.get("above", []))
    if above and len(above) != 2:
        raise _Wrong("above needs the names of two groups", r"\babove =")
    only = tuple((key, _texts(key, given, CONDITIONS[key].__contains__)) for key, given in asked.items())
    return Sign(patterns, sure, only=only, above=above, **details | {"unless": _unbroken(details.get("unless", ""))})


def _unbroken(pattern: str) -> str:
    """The text without line breaks and the blanks after them: they do not count."""
    return _BREAK.sub("", pattern) if "\n" in pattern else pattern


def _check_patterns(signatures: Iterable[Sign]) -> None:
    """Raises _Wrong for what does not compile, and for a signature without a word that its lines must have."""
    for sign in signatures:
        for text in filter(None, (*sign.patterns, sign.unless)):
            try:
                re.compile(text, re.IGNORECASE)
            except re.error as error:
                raise _Wrong(f"bad pattern {text!r}: {error}", re.escape(text[:_SHOWN])) from None
        found: list[str] = []
        for text in sign.patterns:
            with suppress(ValueError):
                found.extend(required(text))
        if not found:
            text = sign.patterns[0]
            raise _Wrong(f"no word that every match of {text!r} has", re.escape(text[:_SHOWN]))


@cache
def pattern_needs() -> Mapping[str, Needs]:
    """The needs of all patterns that `make docs` has computed; to compute them takes ten times as long as to read
    them."""
    found: Mapping[str, Any] = json.loads(NEEDS.read_text(encoding="utf-8"))
    return {digest: ((row[0], row[1]), row[2:]) for digest, row in found.items()}
