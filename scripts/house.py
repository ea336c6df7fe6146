"""`make house`: the sizes, engine names and banned words of the tree, and the seconds of the last unit run.

The budgets are in house.toml; tests/unit/test_house.py checks them.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import statistics
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import yaml

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "sparkwright"
TESTS = ROOT / "tests"
BUDGETS = Path(__file__).with_name("house.toml")
UNIT_RUN = ROOT / "build" / "tests" / "unit.xml"

LONGEST_FUNCTION = 45
LONGEST_FILE = 300

# The only places that may know an engine by its name.
ENGINE_ROOMS = ("engines", "recipes", "simulator")
ENGINE_NAMES = frozenset({"vllm", "vllm-ray", "sglang", "trtllm", "llama-cpp", "twin"})
ENGINE_CONSTANT = re.compile(r"_?(VLLM|SGLANG|TRTLLM|LLAMA|TWIN|SIMULATOR)(_RAY|_CPP|_ENGINES?)?")

# What style.md bans, and what to write. `text`: a pattern for sentences. A name is banned by one of its parts.
BANNED_TEXT: Mapping[str, str] = {
    r"tells?|told|telling": "print, report, show",
    r"says?|said|saying": "print, report, show",
    r"mend(s|ed|ing)?": "fix",
    r"cures?|cured": "hint",
    r"stands?|stood|standing": "is, appears",
    r"beside": "next to, along with, compared with",
    r"(go|goes|going|gone|went) on with": "continue, resume",
    r"anew": "again",
    r"by (itself|themselves)": "automatically",
    r"whoever": "the user, another client",
    r"look(s|ed|ing)? at": "inspect, sample",
    r"knock(s|ed|ing)?": "probe",
    r"brings?|brought|bringing": "start, copy, install",
    r"obey(s|ed|ing)?": "apply, follow",
    r"lends?|lent|lending": "",
    r"(is|are|was|were|be|been) kept (as|in|at|under|for)": "saved",
    r"wish(es|ed)?": "request",
    r"crew|senses": "",
    r"('s|own|last|wrong|these|those|few|such|which|in) words": "labels, text, output",
    r"doors?": "gateway",
    r"calm(s|er)?": "idle",
    r"held (to|against|fresh)|held by (a|the|its) tests?": "meets, checked against",
    r"no word of": "no mention of",
    r"wanted|observed": "expected ..., found ...",
    r"(?<!plan )(?<!up )(?<!name: )(?<!engine: )(?<!disarm )twins?": "simulator, port pair, OEM variant",
}
PARTS_BANNED = """
tell tells told says said say mend mends mended cure cures cured stand stands standing beside anew whoever knock knocks
bring brings obey obeys lend lends wish wishes crew senses door doors calm held twin twins"""
BANNED_PARTS = frozenset(PARTS_BANNED.split())
BANNED_NAMES = frozenset({"words", "keep", "keeps", "kept"})  # as the whole name
SENTENCE = re.compile(rf"(?<![\w./-])(?:{'|'.join(BANNED_TEXT)})(?![\w/-])", re.IGNORECASE)
# One of these is in all that SENTENCE finds; they are sought first, since that is quick.
QUICK = """tell told say said mend cure stand stood beside goes going gone went go anew itself themselves whoever look
knock bring brought obey lend lent kept wish crew senses words door calm held word wanted observed twin"""
STEMS = QUICK.split()
MADE = re.compile(r"(Made|Written|Generated) by (`make|scripts/)")
CODE_SPAN = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<[^>]*>|https?://\S+", re.S)  # of a Markdown page
PATTERN = re.compile(r"\\[bdsSwW.(\[]|\(\?|\.\*|\.\{\d|\[\^")  # a regular expression is no sentence
FROM_OUTSIDE = ("certain", "likely", "possible", "hint", "fires", "silent", "consequences", "see", "references")
PARTS_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

Function = ast.FunctionDef | ast.AsyncFunctionDef
KINDS = frozenset({ast.Constant, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Compare, ast.Call})
PASSED_OVER = frozenset({int, str, type(None), bool, ast.Name, ast.Load, ast.Store, ast.arg})


@dataclass(frozen=True)
class Source:
    """What `make house` needs of one Python file; lines of functions are without docstring and decorators."""

    path: Path
    lines: int
    names: list[tuple[str, int]]
    functions: list[tuple[str, int, int]] = field(default_factory=list)  # name, line, length
    texts: list[tuple[str, int]] = field(default_factory=list)  # strings of more than one word, also docstrings
    engines: list[tuple[str, int]] = field(default_factory=list)
    prints: list[int] = field(default_factory=list)


@functools.cache
def sources(folder: str) -> tuple[Source, ...]:
    """Every Python file below a folder of the project, read and parsed once."""
    return tuple(read_source(path) for path in sorted((ROOT / folder).rglob("*.py")))


def read_source(path: Path) -> Source:
    """Of a test only its names and docstrings: its other strings are what the program prints."""
    text = path.read_text()
    source = Source(path, len(text.splitlines()), names=[(path.stem, 1)])
    for node in below(ast.parse(text), statements_only=TESTS in path.parents):
        add(node, source)
    return source


def add(node: ast.AST, to: Source) -> None:
    match node:
        case ast.Constant(value=str(value)):
            if " " in value:
                to.texts.append((value, node.lineno))
            elif value in ENGINE_NAMES:
                to.engines.append((value, node.lineno))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            to.functions.append((node.name, node.lineno, length(node)))
            to.names.append((node.name, node.lineno))
        case ast.ClassDef():
            to.names.append((node.name, node.lineno))
        case ast.Compare():
            sides = (side for one in (node.left, *node.comparators) for side in (one, *getattr(one, "elts", ())))
            to.engines.extend((name, node.lineno) for name in map(name_of, sides) if ENGINE_CONSTANT.fullmatch(name))
        case ast.Call(func=ast.Name(id="print")):
            to.prints.append(node.lineno)


def below(tree: ast.AST, statements_only: bool) -> Iterator[ast.AST]:
    """The nodes that matter here; names and numbers, more than half of all, are passed over."""
    queue: list[ast.AST] = [tree]
    while queue:
        node = queue.pop()
        kind = type(node)
        if kind in KINDS:
            yield node
        if kind is ast.Constant or (statements_only and isinstance(node, ast.expr)):
            continue
        for value in node.__dict__.values():
            if type(value) is list:
                queue += [one for one in value if isinstance(one, ast.AST)]
            elif type(value) not in PASSED_OVER:
                queue.append(value)


def length(function: Function) -> int:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return lines - ((first.end_lineno or first.lineno) - first.lineno + 1 if is_docstring else 0)


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def package(path: Path) -> str:
    """The budget that a file counts for: a package of src, another folder of the project, or the page itself."""
    parts = path.relative_to(SOURCE).parts if SOURCE in path.parents else path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py") if len(parts) > 1 or SOURCE in path.parents else parts[-1]


def counted(what: str) -> Counter[str]:
    """`lines`, `engine_names` or `words` by package, folder or page: the tables of house.toml."""
    if what != "lines":
        places = engine_names() if what == "engine_names" else banned_words()
        return Counter({room: len(found) for room, found in places.items()})
    found: Counter[str] = Counter()
    for source in sources("src"):
        found[package(source.path)] += source.lines
    return found


def long_functions(limit: int = LONGEST_FUNCTION) -> dict[str, int]:
    return {
        f"{source.path.relative_to(ROOT)}:{line} {name}": size
        for source in sources("src")
        for name, line, size in source.functions
        if size > limit
    }


def long_files(limit: int = LONGEST_FILE) -> dict[str, int]:
    """Launchers travel to a node as one file each."""
    shorter = (source for source in sources("src") if source.path.parent.name != "launchers")
    return {str(source.path.relative_to(ROOT)): source.lines for source in shorter if source.lines > limit}


def engine_names() -> dict[str, list[str]]:
    """Engines' names outside the rooms that may know them, by package."""
    found: dict[str, list[str]] = {}
    for source in sources("src"):
        if (room := package(source.path)) not in ENGINE_ROOMS:
            where = source.path.relative_to(ROOT)
            found.setdefault(room, []).extend(f"{where}:{line}: {name}" for name, line in source.engines)
    return {room: places for room, places in found.items() if places}


def banned_words() -> dict[str, list[str]]:
    """`file:line: word` by package of src, folder of the project and page."""
    found: dict[str, list[str]] = {}
    for path, line, word in sorted({*in_python(), *in_data(), *in_pages()}):
        found.setdefault(package(path), []).append(f"{path.relative_to(ROOT)}:{line}: {word}")
    return found


def in_python() -> Iterator[tuple[Path, int, str]]:
    for source in (*sources("src"), *sources("tests"), *sources("scripts")):
        if source.path == Path(__file__):
            continue
        for text, line in source.texts:
            if not PATTERN.search(text):
                yield from ((source.path, line + above, word) for above, word in banned_in(text))
        for name, line in source.names:
            if not name.startswith("_"):
                yield from ((source.path, line, f"{name} (name)") for _ in filter(None, [banned_name(name)]))


def in_data() -> Iterator[tuple[Path, int, str]]:
    """Sentences in TOML and YAML; the line is that of the first place where the sentence's beginning is."""
    for path in sorted((*SOURCE.rglob("*.toml"), *SOURCE.rglob("*.yaml"))):
        raw = path.read_text()
        data = tomllib.loads(raw) if path.suffix == ".toml" else yaml.load(raw, yaml.CSafeLoader)
        for text in sentences(data):
            where = raw.find(text.split("\n")[0].strip()[:40])
            line = raw.count("\n", 0, max(where, 0)) + 1
            yield from ((path, line + above, word) for above, word in banned_in(text))


def sentences(data: object) -> Iterator[str]:
    if isinstance(data, str) and " " in data:
        yield data
    elif isinstance(data, Mapping):
        kept = (value for key, value in data.items() if key not in FROM_OUTSIDE and not str(key)[:1].isdigit())
        yield from (text for value in kept for text in sentences(value))
    elif isinstance(data, list):
        yield from (text for value in data for text in sentences(value))


def in_pages() -> Iterator[tuple[Path, int, str]]:
    """Pages by hand; one that is made has the words of its source."""
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = path.read_text()
        if not MADE.search(text[:1000]):
            without_code = CODE_SPAN.sub(lambda code: "\n" * code[0].count("\n"), text)
            yield from ((path, 1 + above, word) for above, word in banned_in(without_code))


def banned_in(text: str) -> Iterator[tuple[int, str]]:
    """(line of the text, from 0; the word)"""
    lowered = text.lower()
    if any(stem in lowered for stem in STEMS):
        for found in SENTENCE.finditer(text):
            yield text.count("\n", 0, found.start()), found[0].lower()


def banned_name(name: str) -> str | None:
    """The part of a name that is banned. `kept_alive` and `keep_alive` are the field's."""
    parts = [part.lower() for part in PARTS_OF_NAME.findall(name)]
    return next((part for part in parts if part in BANNED_PARTS or (len(parts) == 1 and part in BANNED_NAMES)), None)


def unit_seconds() -> tuple[float, int] | None:
    """(seconds of the last `make unit`, tests), from its own report; None when there is none."""
    if not UNIT_RUN.exists():
        return None
    suites = list(ElementTree.parse(UNIT_RUN).getroot().iter("testsuite"))
    return sum(float(one.get("time", 0)) for one in suites), sum(int(one.get("tests", 0)) for one in suites)


def budgets() -> dict[str, dict[str, int]]:
    return tomllib.loads(BUDGETS.read_text())


def show(details: str | None) -> None:
    kept, lengths = budgets(), sorted(size for source in sources("src") for *_, size in source.functions)
    table("lines of Python in src", counted("lines"), kept["lines"])
    print(f"\nfiles in src: {len(sources('src'))}, budget {kept['most']['files']}")
    p90 = statistics.quantiles(lengths, n=10)[-1]
    print(f"functions: {len(lengths)}, median {statistics.median(lengths):.0f}, p90 {p90:.0f}, max {lengths[-1]} lines")
    for what, long in (("functions over 45", long_functions()), ("files over 300", long_files())):
        print(f"{what} lines: {len(long)}" + "".join(f"\n  {size:>4}  {name}" for name, size in long.items()))
    for title, what, places in (
        ("engine names outside engines, recipes, simulator", "engine_names", engine_names()),
        ("banned words", "words", banned_words()),
    ):
        print()
        table(title, counted(what), kept[what])
        for place in (place for room, found in places.items() if details in (room, "all") for place in found):
            print(f"  {place}")
    seconds = unit_seconds()
    print("\nunit tests: " + (f"{seconds[1]} in {seconds[0]:.1f} s" if seconds else "no run yet (make unit)"))


def table(title: str, counts: Counter[str], budget: Mapping[str, int]) -> None:
    print(f"{title:<50} {'count':>7} {'budget':>7}")
    for name, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        print(f"  {name:<48} {count:>7} {budget.get(name, 0):>7}{'  OVER' if count > budget.get(name, 0) else ''}")
    print(f"  {'all':<48} {counts.total():>7} {sum(budget.values()):>7}")


def record(slack: int) -> None:
    """Today's figures as budgets; those of lines, files and words are rounded up to the next `slack` of their kind."""
    longest = max(size for source in sources("src") for *_, size in source.functions)
    rows: dict[str, Mapping[str, int]] = {
        "most": {"files": rounded_up(len(sources("src")), slack // 10), "function": max(longest, LONGEST_FUNCTION)},
        "lines": {name: rounded_up(count, slack) for name, count in counted("lines").items()},
        "engine_names": counted("engine_names"),
        "words": {name: rounded_up(count, slack // 10) for name, count in counted("words").items()},
    }
    head = BUDGETS.read_text().partition("[")[0]
    parts = (
        "\n".join([f"[{name}]", *(f'"{key}" = {n}' for key, n in sorted(of.items()))]) for name, of in rows.items()
    )
    BUDGETS.write_text(head + "\n\n".join(parts) + "\n")


def rounded_up(count: int, step: int) -> int:
    return -(-count // step) * step if step > 1 else count


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make house ARGS=", description=__doc__)
    parser.add_argument(
        "--record", type=int, metavar="N", help="write the figures as budgets, rounded up to N; 1: exact"
    )
    parser.add_argument("--list", metavar="PACKAGE", help="each place of a name or a word; all: everywhere")
    asked = parser.parse_args(arguments)
    if asked.record:
        record(asked.record)
    show(asked.list)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
