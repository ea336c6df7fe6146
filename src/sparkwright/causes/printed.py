"""The parts of a log that are no messages (settings, outputs of commands, stack dumps), and the differences between
ranks."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.domain.diagnosis import Difference, Proof, StatedFact
from sparkwright.domain.values import dataclass, field
from sparkwright.logscan.book import linear
from sparkwright.logscan.logline import LONGEST, decoded

_FILE = Path(__file__).with_name("mechanisms") / "printed.toml"
_KEYS = {
    "": ("marks", "settings", "stack", "table"),
    "settings": ("secret", "secret_value", "own", "variable", "kinds"),
    "stack": ("thread", "frame", "waiting", "stuck", "entry"),
    "table": ("key", "header", "like"),
    "row": ("pattern",),
}
_MORE = {"table": ("rows", "columns", "setting"), "row": ("says", "where", "named")}
_LONG, _DUMP = 600, 16_000  # characters of a line, of a line with settings
_SETTINGS, _VALUE, _STATED, _DIFFERENCES = 400, 200, 20, 5
_SHOWN = 60  # characters of a value that differs
_VARIABLES = 3  # lines in a row
_MASK = "(hidden)"
_MARK = re.compile(r"\\.|[,()\[\]{}'\"]| (?=\w{1,60}=)")
_PAIR = re.compile(r"\s*['\"]?([\w.-]{1,80})['\"]?\s?(?:=|: ?)\s?(.*)", re.DOTALL)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)")
_UNITS = {"": 1.0, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4}


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """Stated of it where all of `where` hold; named: a slot that the failure must name, too."""

    pattern: re.Pattern[str]
    says: str = ""
    where: Sequence[Sequence[Any]] = ()
    named: str = ""


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """Output of a command. columns: what is between the columns, which the header names; setting: rows that are one."""

    key: str
    header: re.Pattern[str]
    like: re.Pattern[str]
    rows: tuple[PrintedRow, ...]
    columns: str = ""
    setting: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Forms:
    """All of printed.toml. more: the patterns of settings and stacks by their names."""

    marks: tuple[bytes, ...]
    kinds: Mapping[str, re.Pattern[str]]
    tables: tuple[PrintedTable, ...]
    more: Mapping[str, re.Pattern[str]]


@cache
def load_forms(file: Path = _FILE) -> Forms:
    """Raises ValueError for an unknown or missing key and for a bad pattern."""
    tree = _checked("", tomllib.loads(file.read_text(encoding="utf-8")))
    settings, stack = _checked("settings", tree["settings"]), _checked("stack", tree["stack"])
    kinds = {name: _pattern(text) for name, text in settings.pop("kinds").items()}
    more = {name: _pattern(text) for name, text in {**settings, **stack}.items()}
    return Forms(tuple(mark.encode() for mark in tree["marks"]), kinds, tuple(map(_table, tree["table"])), more)


def _table(tree: dict[str, Any]) -> PrintedTable:
    rows = [_checked("row", row) for row in _checked("table", tree).get("rows", ())]
    made = [PrintedRow(**row | {"pattern": _pattern(row["pattern"])}) for row in rows]
    texts: dict[str, Any] = {key: _pattern(tree[key]) for key in ("header", "like", "setting") if key in tree}
    return PrintedTable(**tree | texts | {"rows": tuple(made)})


def _checked(part: str, tree: dict[str, Any]) -> dict[str, Any]:
    wrong = sorted({*tree} - {*_KEYS[part], *_MORE.get(part, ())}) + sorted({*_KEYS[part]} - {*tree})
    if wrong:
        raise ValueError(f"{_FILE.name}: {part or 'top'}: unknown or missing: {', '.join(wrong)}")
    return tree


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(linear(text))
    except re.error as error:
        raise ValueError(f"{_FILE.name}: bad pattern {text!r}: {error}") from None


@dataclass(slots=True)
class Printed:
    """The printed values of one source. settings: (kind, key) -> value; rows: lines of tables; frame, collective: its
    place, ''."""

    source: str
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    stated: list[tuple[str, StatedFact]] = field(default_factory=list)
    rows: set[int] = field(default_factory=set)
    frame: str = ""
    collective: str = ""
    _table: PrintedTable | None = None
    _slots: dict[str, str] = field(default_factory=dict)
    _columns: tuple[str, ...] = ()
    _variables: list[tuple[int, str, str]] = field(default_factory=list)
    _open: bool = False  # a thread whose frames follow
    _is_main: bool = False
    _entry: dict[str, str] = field(default_factory=dict)

    def read(self, number: int, raw: bytes) -> None:
        text = decoded(raw[:_LONG])[:_LONG]
        marked = self._table or self._open or any(mark in raw for mark in load_forms().marks)
        if (marked and self._row(number, text)) or self._variable(number, text) or not marked:
            return
        self._dump(text, raw)
        self._stack(text)
        self._collectives(text)

    def add(self, kind: str, key: str, value: str) -> None:
        """The first value of a key counts; secrets are hidden."""
        hidden = load_forms().more["secret"].search(key) or load_forms().more["secret_value"].search(value[:_LONG])
        if len(self.settings) < _SETTINGS:
            self.settings.setdefault((kind, key), _MASK if hidden else value.strip(" '\"")[:_VALUE])

    def _row(self, number: int, text: str) -> bool:
        table, top = next(((one, top) for one in load_forms().tables if (top := one.header.search(text))), (None, None))
        if table and top:
            self._table, self._slots = table, top.groupdict("")
            self._columns = tuple(re.sub(r"\W+", "_", one.partition(" [")[0].strip()) for one in text.split(", "))
        elif not (self._table and self._is_like(text)):
            self._table = None
        if not self._table:
            return False
        self.rows.add(number)
        if self._table.columns and not table:
            self._slots = dict(zip(self._columns, text.split(self._table.columns), strict=True))
        if found := self._table.setting and self._table.setting.search(text):
            self.add(self._table.key, found["key"], found["value"].rstrip(", "))
        self._state(number, text, self._table)
        return not self._table.setting or not load_forms().more["variable"].search(text)

    def _is_like(self, text: str) -> bool:
        table = self._table
        if not table or (table.columns and text.count(table.columns) != len(self._columns) - 1):
            return False
        inside = bool(table.setting and load_forms().more["variable"].search(text))
        return inside or bool(table.like.search(text))

    def _state(self, number: int, text: str, table: PrintedTable) -> None:
        for row in table.rows:
            if not (match := row.pattern.search(text)):
                continue
            self._slots |= {name: value.strip() for name, value in match.groupdict().items() if value}
            if row.says and len(self.stated) < _STATED and all(_holds(one, self._slots) for one in row.where):
                said = StatedFact(f"{table.key}: {row.says.format_map(self._slots)}", Proof(self.source, number, text))
                self.stated.append((self._slots.get(row.named, ""), said))
                break

    def _variable(self, number: int, text: str) -> bool:
        """Several in a row are a listing of the environment."""
        found = load_forms().more["variable"].search(text)
        if not found:
            self._variables = []
            return False
        self._variables.append((number, found["key"], found["value"]))
        if len(self._variables) >= _VARIABLES:
            for line, key, value in self._variables:
                self.rows.add(line)
                self.add("environment", key, value.rstrip(' ,"'))
            self._variables = self._variables[1:]
        return True

    def _dump(self, text: str, raw: bytes) -> None:
        for kind, pattern in load_forms().kinds.items():
            if len(self.settings) < _SETTINGS and (found := pattern.search(text)):
                step = 2 * LONGEST
                whole = "".join(decoded(raw[at : at + step]) for at in range(0, min(len(raw), _DUMP), step))
                for part in _parts(whole[found.end() :]):
                    if pair := _PAIR.fullmatch(part):
                        self.add(kind, pair[1], pair[2])
                return

    def _stack(self, text: str) -> None:
        if found := load_forms().more["thread"].search(text):
            main = bool(found["current"] or found["main"])
            self._open, self._is_main = main or not self._is_main, main or self._is_main
        elif not text.strip():
            self._open = False
        elif self._open and (frame := load_forms().more["frame"].search(text)):
            name, file, line = (frame[key] or frame[f"{key}2"] for key in ("name", "file", "line"))
            if not load_forms().more["waiting"].search(file):
                self.frame, self._open = f"{name} ({file.rpartition('/')[2]}:{line})", False

    def _collectives(self, text: str) -> None:
        found = load_forms().more["stuck"].search(text)
        if found and (not self.collective or (found["op"] and self.collective.startswith("seq "))):
            said = f"{found['op'].strip('_').lower()} (seq {found['seq']})" if found["op"] else f"seq {found['work']}"
            self.collective = said
        for entry in load_forms().more["entry"].finditer(text) if not self.collective else ():
            self._entry[entry["field"]] = entry["value"]
            if entry["field"] == "state" and entry["value"] != "completed" and "collective_seq_id" in self._entry:
                known = self._entry
                name, seq = known.get("profiling_name", "collective"), known["collective_seq_id"]
                self.collective = f"{name} (seq {seq}, {known['state']})"
                return


def printed(source: str, lines: Sequence[tuple[int, bytes]]) -> Printed:
    """Reads the kept lines of a source, as (number, raw line) in order."""
    found, whole = Printed(source), b"\n".join(line for _, line in lines)
    if any(mark in whole for mark in load_forms().marks):
        for number, line in lines:
            found.read(number, line)
    return found


def stated(sources: Sequence[Printed], failure: str) -> tuple[StatedFact, ...]:
    """The bad facts that were stated. failure: its lines; a port in use counts only if they name it."""
    named = set(re.findall(r"\d{2,5}", failure))
    known = (said for one in sources for slot, said in one.stated if not slot or slot in named)
    return tuple({said.text: said for said in known}.values())[:_STATED]


def differences(sources: Sequence[Printed], phases: Mapping[str, str]) -> tuple[Difference, ...]:
    """Differences of values that at least two sources have. phases: source -> how far it got; a node's own values are
    left out."""
    every: dict[tuple[str, str], dict[str, str]] = {("", "phase"): dict(phases)}
    for one in sources:
        own = {("", "stack"): one.frame, ("", "collective"): one.collective, **one.settings}
        for key, value in own.items():
            if value and not load_forms().more["own"].search(key[1]):
                every.setdefault(key, {})[one.source] = value[:_SHOWN]
    order = sorted(every, key=lambda key: key[0] != "")
    found = (Difference(key[1], tuple(every[key].items())) for key in order if len(set(every[key].values())) > 1)
    return tuple({one.what: one for one in found}.values())[:_DIFFERENCES]


def _parts(text: str) -> Iterator[str]:
    """Apart at the commas and blanks that are in no quotes and brackets, up to the closing bracket."""
    depth, quote, start, end = 0, "", 0, len(text)
    for found in _MARK.finditer(text):
        sign = found[0]
        if quote or sign in "'\"":
            quote = "" if sign == quote else quote or sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth < 0:
                end = found.start()
                break
        elif sign in ", " and not depth:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:end]


def _holds(condition: Sequence[Any], slots: Mapping[str, str]) -> bool:
    """`slot is pattern`; `slot above share of`, `slot below share of`: amounts with or without units."""
    slot, than, share = condition[:3]
    if than == "is":
        return re.fullmatch(share, slots.get(slot, "")) is not None
    left, right = (_AMOUNT.match(slots.get(name, "")) for name in (slot, condition[3]))
    if not left or not right:
        return False
    over = float(left[1]) * _UNITS[left[2]] - share * float(right[1]) * _UNITS[right[2]]
    return bool(over > 0 if than == "above" else over < 0)
