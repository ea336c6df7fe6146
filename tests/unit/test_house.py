"""The house rules that no linter holds: sizes, layers for every package, no machine paths, nothing unfinished."""

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import house

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sparkwright"
MODULES = sorted(SOURCE.rglob("*.py"))
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["name"]: contract for contract in CONFIG["tool"]["importlinter"]["contracts"]}
LAYERS = CONTRACTS["Decide below, do above"]["layers"]

SIZED = ("src", "tests", "scripts", "tools")
CODE_OR_LINK = re.compile(r"^```.*?^```|^\|.*?$|!?\[[^]]*\]\([^)]*\)|^ *`[^`\n]*`.?$", re.S | re.M)
PROGRAMS = ("cli", "supervisor", "simulator")


def tracked_files() -> list[Path]:
    """The files that git tracks or would track; in a copy without git, all files outside the folders of .gitignore."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        command = [git, "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]
    folders = ("src", "tests", "tools", "scripts", "docs", ".ci")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.iterdir())
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def text_of(path: Path) -> str:
    return path.read_text(errors="replace")


def test_no_function_is_longer_than_the_limit() -> None:
    """A function fits on a screen. Shorter is up to its author: no other size fails."""
    assert house.long_functions() == {}


def test_no_file_is_longer_than_the_limit() -> None:
    """A file has one subject."""
    everything = (source for folder in SIZED for source in house.sources(folder))
    assert {str(source.path): source.lines for source in everything if source.lines > house.MAX_FILE_LINES} == {}


def test_prose_has_one_line_width() -> None:
    """Guards that a page can be read and compared in a terminal: at most 120 columns without links and code."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("[ga]*/*.md")]
    wide = {}
    for page in (one for one in pages if one.parent.name != "acceptance"):
        prose = re.sub(
            r"^```.*?^```|^\|.*?$|!?\[[^]]*\]\([^)]*\)|^ *`[^`\n]*`.?$", "", text_of(page), flags=re.S | re.M
        )
        wide[page.name] = [line for line in prose.splitlines() if len(line) > 120]
    assert {name: lines for name, lines in wide.items() if lines} == {}


def test_only_the_engine_packages_name_an_engine() -> None:
    """Knowledge about engines stays in `engines`, `recipes` and the simulator."""
    assert house.engine_names() == {}, "make house ARGS='--list all' shows the places"


def test_every_package_has_its_layer() -> None:
    """A new folder cannot are outside the layers, or import-linter would not inspect it."""
    known = {name.strip() for layer in LAYERS for name in layer.split("|")}
    there = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {path.stem for path in SOURCE.glob("*.py")}
    assert there - known - {"__init__", "__main__"} == set()
    assert CONTRACTS["Decide below, do above"]["exhaustive"] is True


def test_every_package_below_the_ports_is_pure() -> None:
    """The contract that forbids the clock, files and sockets names each package below `ports`."""
    below = {name.strip() for layer in LAYERS[LAYERS.index("ports") + 1 :] for name in layer.split("|")}
    pure = CONTRACTS["The pure part touches no world"]["source_modules"]
    assert {f"sparkwright.{name}" for name in below} == set(pure)


def test_only_programs_print() -> None:
    """Guards that only cli, supervisor and simulator are programs; everything else returns its results."""
    others = (source for source in house.sources("src") if house.package(source.path) not in PROGRAMS)
    assert {str(source.path): source.prints for source in others if source.prints} == {}


def asks_before_it_waits(call: ast.Call) -> bool:
    """True if the sentence for the end of a `wait_until` is made, with what it asks, at its begin."""
    named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    said = [arg for at, arg in enumerate(call.args) if at == 1 or isinstance(arg, ast.JoinedStr)]
    asked = (node for arg in said if not isinstance(arg, ast.Lambda) for node in ast.walk(arg))
    return named == "wait_until" and any(isinstance(node, ast.Call) for node in asked)


def test_a_wait_ends_with_what_was_there_at_its_end() -> None:
    """Guards whoever reads a failure: text that was asked before the wait once passed for a page that stood still."""
    files = [path for folder in ("tests", "tools") for path in (ROOT / folder).rglob("*.py")]
    trees = ((path, ast.parse(text)) for path in files if "wait_until(" in (text := text_of(path)))
    calls = ((path, node) for path, tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    assert [f"{path.relative_to(ROOT)}:{call.lineno}" for path, call in calls if asks_before_it_waits(call)] == []


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
