"""The house rules that no linter holds: sizes, layers for every package, no machine paths, nothing unfinished."""

import ast
import re
import shutil
import statistics
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sparkwright"
MODULES = sorted(SOURCE.rglob("*.py"))
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["name"]: contract for contract in CONFIG["tool"]["importlinter"]["contracts"]}
LAYERS = CONTRACTS["Decide below, do above"]["layers"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    yield from (node for node in statements(ast.parse(path.read_text())) if isinstance(node, Function))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All below the node; expressions hold no function with a name, so they are passed over."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            yield inner
            yield from statements(inner)


def length(function: Function) -> int:
    """Lines without the docstring, decorators not counted."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return lines - ((first.end_lineno or first.lineno) - first.lineno + 1 if is_docstring else 0)


def function_lengths() -> dict[str, int]:
    return {
        f"{path.relative_to(SOURCE)}:{function.lineno} {function.name}": length(function)
        for path in MODULES
        for function in functions(path)
    }


def lines_of(paths: list[Path]) -> dict[str, int]:
    return {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths}


def tracked_files() -> list[Path]:
    """What git tracks or would track; in a copy without git, all files outside what .gitignore's folders hold."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        command = [git, "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]
    folders = ("src", "tests", "scripts", "docs", ".ci")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.iterdir())
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def text_of(path: Path) -> str:
    return path.read_text(errors="replace")


def test_functions_are_short() -> None:
    """A function fits in the eye: median at most 8 lines, nine in ten at most 25, none over 50."""
    lengths = function_lengths()
    assert {name: size for name, size in lengths.items() if size > 50} == {}
    long = {name: size for name, size in lengths.items() if size > 25}
    assert len(long) <= 0.1 * len(lengths), long
    assert statistics.median(lengths.values()) <= 8


def test_files_are_short() -> None:
    """A file has one subject: at most 300 lines; tests, scripts and programs that travel to a node as one file, 500."""
    everything = [path for folder in ("src", "tests", "scripts") for path in (ROOT / folder).rglob("*.py")]
    assert {name: size for name, size in lines_of(everything).items() if size > 500} == {}
    modules = [path for path in MODULES if path.parent.name != "launchers"]
    assert {name: size for name, size in lines_of(modules).items() if size > 300} == {}


def test_every_package_has_its_layer() -> None:
    """A new folder cannot stand outside the layers, or import-linter would not look at it."""
    known = {name.strip() for layer in LAYERS for name in layer.split("|")}
    there = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {path.stem for path in SOURCE.glob("*.py")}
    assert there - known - {"__init__", "__main__"} == set()
    assert CONTRACTS["Decide below, do above"]["exhaustive"] is True


def test_every_package_below_the_ports_is_pure() -> None:
    """The contract that forbids the clock, files and sockets names each package below `ports`."""
    below = {name.strip() for layer in LAYERS[LAYERS.index("ports") + 1 :] for name in layer.split("|")}
    pure = CONTRACTS["The pure part touches no world"]["source_modules"]
    assert {f"sparkwright.{name}" for name in below} == set(pure)


def prints(path: Path) -> list[int]:
    """The lines that call `print`; only a file that has the word is parsed for it."""
    text = path.read_text()
    tree = ast.parse(text if "print" in text else "")
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


def test_only_programs_print() -> None:
    """Only cli, supervisor and simulator are programs; everything else returns what it has to say."""
    others = [path for path in MODULES if path.relative_to(SOURCE).parts[0] not in ("cli", "supervisor", "simulator")]
    assert {str(path): lines for path in others if (lines := prints(path))} == {}


def test_no_file_names_the_machine_it_was_written_on() -> None:
    """A path of the author's machine works nowhere else. Pasted evidence under tests/data may hold any path."""
    machine = re.compile(r"/work/" + r"(main|shared|\.library)\b|/root/" + r"\.pyenv|/home/" + r"claude")
    ours = [path for path in tracked_files() if ROOT / "tests" / "data" not in path.parents]
    assert {str(path.relative_to(ROOT)) for path in ours if machine.search(text_of(path))} == set()


def test_nothing_is_left_unfinished() -> None:
    """Shipped code holds no note to come back later; what is missing is an issue."""
    later = re.compile(r"\bTO" + r"DO\b|\bFIX" + r"ME\b|raise NotImplemented" + "Error")
    found = {str(path.relative_to(SOURCE)): later.findall(path.read_text()) for path in MODULES}
    assert {name: words for name, words in found.items() if words} == {}
