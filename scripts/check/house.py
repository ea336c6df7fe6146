"""`make house`: sizes of the tree, engine names outside their packages, and the seconds of the last unit run."""

from __future__ import annotations

import argparse
import ast
import functools
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from file_memory import FileMemory

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sparkwright"
TESTS = ROOT / "tests"
TOOLS = ROOT / "tools"
UNIT_RUN = ROOT / "build" / "tests" / "unit.xml"

MAX_FUNCTION_LINES = 60  # more fails tests/unit/test_house.py; no other size does
MAX_FILE_LINES = 500

# The only places that may know an engine by its name.
ENGINE_ROOMS = ("engines", "recipes", "simulator")
ENGINE_NAMES = frozenset({"vllm", "vllm-ray", "sglang", "trtllm", "llama-cpp"})  # `simulator` is a package, too
ENGINE_CONSTANT = re.compile(r"_?(VLLM|SGLANG|TRTLLM|LLAMA|SIMULATOR)(_RAY|_CPP|_ENGINES?)?")

Function = ast.FunctionDef | ast.AsyncFunctionDef
KINDS = frozenset({ast.Constant, ast.FunctionDef, ast.AsyncFunctionDef, ast.Compare, ast.Call})
PASSED_OVER = frozenset({int, str, type(None), bool, ast.Name, ast.Load, ast.Store, ast.arg})


@dataclass(frozen=True)
class SourceFile:
    """Figures of one Python file; lines of functions are without docstring and decorators."""

    path: Path
    lines: int
    functions: list[tuple[str, int, int]] = field(default_factory=list)  # name, line, length
    engines: list[tuple[str, int]] = field(default_factory=list)
    prints: list[int] = field(default_factory=list)


@functools.cache
def sources(folder: str) -> tuple[SourceFile, ...]:
    """Every Python file below a folder of the project, read and parsed once."""
    memory = FileMemory(Path(__file__))
    found = tuple(known_source(memory, path) for path in sorted((ROOT / folder).rglob("*.py")))
    memory.save()
    return found


def known_source(memory: FileMemory, path: Path) -> SourceFile:
    def rows(text: str) -> list[Any]:
        source = read_source(path, text)
        return [source.lines, source.functions, source.engines, source.prints]

    lines, functions, engines, prints = memory.found_in(path, rows)
    return SourceFile(path, lines, [(*each,) for each in functions], [(*each,) for each in engines], prints)


def read_source(path: Path, text: str) -> SourceFile:
    """Parse one file; of a test only its statements."""
    source = SourceFile(path, len(text.splitlines()))
    for node in nodes_below(ast.parse(text), statements_only=not {TESTS, TOOLS}.isdisjoint(path.parents)):
        add_node(node, source)
    return source


def add_node(node: ast.AST, to: SourceFile) -> None:
    match node:
        case ast.Constant(value=str(value)):
            if value in ENGINE_NAMES:
                to.engines.append((value, node.lineno))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            to.functions.append((node.name, node.lineno, length(node)))
        case ast.Compare():
            sides = (side for one in (node.left, *node.comparators) for side in (one, *getattr(one, "elts", ())))
            to.engines.extend((name, node.lineno) for name in map(name_of, sides) if ENGINE_CONSTANT.fullmatch(name))
        case ast.Call(func=ast.Name(id="print")):
            to.prints.append(node.lineno)


def nodes_below(tree: ast.AST, statements_only: bool) -> Iterator[ast.AST]:
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
    """Package of src that a file belongs to, or its top folder in the project."""
    parts = path.relative_to(SOURCE).parts if SOURCE in path.parents else path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py") if len(parts) > 1 or SOURCE in path.parents else parts[-1]


def line_counts() -> Counter[str]:
    """Lines of Python by package of src."""
    found: Counter[str] = Counter()
    for source in sources("src"):
        found[package(source.path)] += source.lines
    return found


def long_functions(limit: int = MAX_FUNCTION_LINES) -> dict[str, int]:
    return {
        f"{source.path.relative_to(ROOT)}:{line} {name}": size
        for source in sources("src")
        for name, line, size in source.functions
        if size > limit
    }


def long_files(limit: int = MAX_FILE_LINES) -> dict[str, int]:
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


def unit_seconds() -> tuple[float, int] | None:
    """(seconds of the last `make unit`, tests), from its own report; None when there is none."""
    if not UNIT_RUN.exists():
        return None
    suites = list(ElementTree.parse(UNIT_RUN).getroot().iter("testsuite"))
    return sum(float(one.get("time", 0)) for one in suites), sum(int(one.get("tests", 0)) for one in suites)


def print_sizes(details: str | None) -> None:
    lengths = sorted(size for source in sources("src") for *_, size in source.functions)
    print_table("lines of Python in src", line_counts())
    print(f"\nfiles in src: {len(sources('src'))}")
    p90 = statistics.quantiles(lengths, n=10)[-1]
    print(f"functions: {len(lengths)}, median {statistics.median(lengths):.0f}, p90 {p90:.0f}, max {lengths[-1]} lines")
    for what, limit, found in (
        ("functions", MAX_FUNCTION_LINES, long_functions()),
        ("files", MAX_FILE_LINES, long_files()),
    ):
        print(f"{what} over {limit} lines: {len(found)}" + "".join(f"\n  {n:>4}  {name}" for name, n in found.items()))
    print()
    names = engine_names()
    print_table(
        "engine names outside engines, recipes, simulator", Counter({room: len(at) for room, at in names.items()})
    )
    for place in (place for room, at in names.items() if details in (room, "all") for place in at):
        print(f"  {place}")
    seconds = unit_seconds()
    print("\nunit tests: " + (f"{seconds[1]} in {seconds[0]:.1f} s" if seconds else "no run yet (make unit)"))


def print_table(title: str, counts: Counter[str]) -> None:
    print(f"{title:<50} {'count':>7}")
    for name, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        print(f"  {name:<48} {count:>7}")
    print(f"  {'all':<48} {counts.total():>7}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make house ARGS=", description=__doc__)
    parser.add_argument("--list", metavar="PACKAGE", help="show each place of an engine's name; all: in every package")
    print_sizes(parser.parse_args(arguments).list)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
