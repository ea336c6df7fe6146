"""Three rules of grammar for code, part of `make lint`; docs in CONTRIBUTING.md.

- A docstring does not begin with a preposition, a conjunction, a question word, or with `also`, `that`, `those`.
- A public class name is defined once in src, scripts, tests and tools together.
- A public function of a module has at least six letters, unless the field uses the word alone (`plan`, `parse`).

readability.toml records how many places broke a rule when it was introduced, file by file: more of them fail.
`--list RULE [FILE]` shows the places, `--record` lowers the numbers to those of today and never raises one.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from file_memory import FileMemory

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "scripts" / "check" / "readability.toml"
FOLDERS = ("src", "scripts", "tests", "tools")
DOCSTRINGS, CLASSES, FUNCTIONS = RULES = ("docstrings", "classes", "functions")
ADVICE = {
    DOCSTRINGS: "begin with a noun phrase or a verb (`The free memory of ...`, `Starts ...`, `True if ...`)",
    CLASSES: "the name is taken: say which one it is (`RecipeSource`, not `Source`)",
    FUNCTIONS: "name the object, too (`read_config`, not `read`)",
}
LETTERS = 6
PREPOSITIONS = """of in on at by for with without from to into onto over under after before between behind within during
    until till since as than via per among amongst across against along around beneath beside besides beyond despite
    except inside outside near through throughout toward towards upon about above below"""
CONJUNCTIONS = "and or but nor so yet if unless while because although though whereas whenever wherever"
POINTERS = "also that those"  # they need the name, or the sentence before, to be understood
QUESTIONS = "what whatever which whichever who whoever whom whose when where why how however whether"
NOT_FIRST = frozenset(f"{PREPOSITIONS} {CONJUNCTIONS} {QUESTIONS} {POINTERS}".split())
FIRST_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")  # code in backquotes is no word


@dataclass(frozen=True)
class Place:
    """A place that breaks a rule. key: the file, or the class name, under which the record counts it."""

    rule: str
    key: str
    where: str
    text: str

    @property
    def name(self) -> str:
        """The function's or class's own name."""
        return self.text.split()[-1]


def begins_badly(docstring: str) -> bool:
    """True if the first word is a preposition, a conjunction or a question word; one in capitals is a name."""
    word = FIRST_WORD.match(docstring.lstrip())
    return word is not None and word[0].lower() in NOT_FIRST and not (len(word[0]) > 1 and word[0].isupper())


def is_too_short(name: str, field_words: frozenset[str]) -> bool:
    """True for a public function whose name does not say what it is without its module."""
    return not name.startswith("_") and len(name.replace("_", "")) < LETTERS and name not in field_words


def docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring in a statement or a module; expressions, most of a tree, are passed over."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str(text)), lineno=line), *_]:
                yield line, text
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()) if not isinstance(node, ast.expr) else ():
            yield from docstrings(child)


def places_in(path: str, text: str, field_words: frozenset[str]) -> Iterator[Place]:
    """All places of one file that break the first and the third rule, and each of its public classes."""
    tree = ast.parse(text)
    for line, docstring in docstrings(tree):
        if begins_badly(docstring):
            yield Place(DOCSTRINGS, path, f"{path}:{line}", docstring.strip().split("\n")[0])
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield Place(CLASSES, node.name, f"{path}:{node.lineno}", f"class {node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_too_short(node.name, field_words):
            yield Place(FUNCTIONS, path, f"{path}:{node.lineno}", f"def {node.name}")


def only_doubled(places: Iterable[Place]) -> list[Place]:
    """The places without classes whose name is defined once."""
    listed = list(places)
    defined = Counter(place.key for place in listed if place.rule == CLASSES)
    return [place for place in listed if place.rule != CLASSES or defined[place.key] > 1]


def all_places(field_words: frozenset[str]) -> list[Place]:
    memory = FileMemory(Path(__file__))
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [place for path in files for place in known_places(memory, path)]
    memory.save()
    # Words of the field are no part of what is remembered: they stand in another file.
    return only_doubled(place for place in found if place.rule != FUNCTIONS or place.name not in field_words)


def known_places(memory: FileMemory, path: Path) -> list[Place]:
    name = str(path.relative_to(ROOT))
    rows = memory.found_in(path, lambda text: [astuple(place) for place in places_in(name, text, frozenset())])
    return [Place(*row) for row in rows]


def counts(places: Iterable[Place]) -> dict[str, Counter[str]]:
    """The number of places by rule and key."""
    found: dict[str, Counter[str]] = {rule: Counter() for rule in RULES}
    for place in places:
        found[place.rule][place.key] += 1
    return found


def excess(places: Sequence[Place], record: Mapping[str, Any]) -> list[str]:
    """Messages about each key with more places than recorded: the number, the advice and the places."""
    messages = []
    for rule, now in counts(places).items():
        for key, number in sorted(now.items()):
            allowed = record.get(rule, {}).get(key, 0)
            if number > allowed:
                at = [f"  {place.where}: {place.text}" for place in places if (place.rule, place.key) == (rule, key)]
                messages.append("\n".join([f"{rule}: {key}: {number}, recorded {allowed}; {ADVICE[rule]}", *at]))
    return messages


def lowered(record: Mapping[str, Any], now: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """The record with every number lowered to that of today; 0 is left out."""
    smaller = {rule: {key: min(n, now[rule][key]) for key, n in record.get(rule, {}).items()} for rule in RULES}
    return {rule: {key: n for key, n in sorted(rows.items()) if n} for rule, rows in smaller.items()}


def record_text(old: str, rules: Mapping[str, Mapping[str, int]]) -> str:
    """The file's text with new numbers; its head, up to the first table, is kept."""
    head = old.partition("\n[")[0].rstrip("\n")
    tables = ["\n".join([f"[{rule}]", *(f'"{key}" = {n}' for key, n in rules[rule].items())]) for rule in RULES]
    return "\n\n".join([head, *tables]) + "\n"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="readability.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--list", nargs="+", metavar="RULE", help=f"show the places of {', '.join(RULES)} [FILE]")
    parser.add_argument("--record", action="store_true", help="lower the recorded numbers to those of today")
    options = parser.parse_args(arguments)
    old = RECORD.read_text(encoding="utf-8")
    record = tomllib.loads(old)
    places = all_places(frozenset(record["field_words"]))
    if options.list:
        rule, *keys = options.list
        print("\n".join(f"{p.where}: {p.text}" for p in places if p.rule == rule and (not keys or p.key in keys)))
        return 0
    now = counts(places)
    if options.record:
        RECORD.write_text(record_text(old, lowered(record, now)), encoding="utf-8")
    messages = excess(places, record)
    print("\n".join(messages) or ", ".join(f"{rule}: {now[rule].total()} recorded" for rule in RULES))
    return int(bool(messages))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
