"""`make check`: what a commit needs before it is made, in seconds: format, lint, types, layers, and the unit tests of
what changed.

Changed: what differs from HEAD; with nothing changed, what the last commit changed. A changed test file selects itself,
a changed module or data file the tests in the folder of the same name and those that import it. A module that half of
the tests import selects more than a minute of them: then those named after it are run, and of the others as many as fit
into some seconds, short files first. The rest is counted, and `--all` runs it, too. Of the tests marked `full` only the
house tests are run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "tests" / "unit"
HOUSE = "tests/unit/test_house.py"
DURATIONS = ROOT / "build" / "tests" / "durations.json"  # seconds per test file, written by scripts/testing/test_all.py
TYPICAL = 0.3  # seconds of a test file that no run has measured
BUDGET = 8.0  # seconds of tests by those durations, which are of two processes at a time beside other parts
# The longest first: two run at a time.
TOOLS: tuple[tuple[str, ...], ...] = (
    ("mypy",),
    ("python", "scripts/check/readability.py"),
    ("lint-imports",),
    ("ruff", "check", "--quiet", "."),
    ("ruff", "format", "--check", "--quiet", "."),
)


def main(words: Sequence[str]) -> int:
    os.environ["PATH"] = f"{ROOT}/.venv/bin:{os.environ['PATH']}"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    files, everything = changed_files(), "--all" in words
    selected, seconds = selected_tests(files), measured_seconds()
    tests = selected if everything else affordable_tests(selected, files, seconds)
    tools = TOOLS if any(name.endswith((".py", ".toml")) for name in files) else ()
    more = [word for word in words if word != "--all"]
    commands = [("python", "-m", "pytest", "-m", "house or not full", *tests, *more), *tools]
    with ThreadPoolExecutor(2) as pool:
        failed = [name for name in pool.map(run, commands) if name]
    summary = f"{len(files)} changed files, {len(tests)} test files, {time.monotonic() - began:.1f} s"
    print(f"check: {summary}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    if rest := sorted(set(selected) - set(tests)):
        took = sum(seconds.get(name, TYPICAL) for name in rest)
        print(f"check: {len(rest)} more test files use what changed (about {took:.0f} s): make check ARGS=--all")
    return int(bool(failed))


def measured_seconds() -> dict[str, float]:
    """Seconds of each test file as the last whole run measured them; empty without one."""
    try:
        return {name: float(took) for name, took in json.loads(DURATIONS.read_text()).items()}
    except (OSError, ValueError):
        return {}


def affordable_tests(
    selected: Sequence[str], changed: Collection[str], seconds: Mapping[str, float], budget: float = BUDGET
) -> list[str]:
    """The changed test files, those named after a change, the house test, and the others that fit into the budget."""
    named = {HOUSE, *changed, *(f"test_{Path(name).stem}" for name in changed)}
    chosen = [name for name in selected if not named.isdisjoint((name, Path(name).stem))]
    for name in sorted(set(selected) - set(chosen), key=lambda name: (seconds.get(name, TYPICAL), name)):
        budget -= seconds.get(name, TYPICAL)
        if budget >= 0:
            chosen.append(name)
    return sorted(chosen)


def changed_files() -> list[str]:
    changed = run_git("diff", "--name-only", "HEAD") + run_git("ls-files", "--others", "--exclude-standard")
    return changed or run_git("diff", "--name-only", "HEAD~1")


def run_git(*words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return done.stdout.splitlines()


def selected_tests(files: Iterable[str]) -> list[str]:
    """The house test is always there: it reads every file."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in UNIT.rglob("test_*.py")}
    found = {HOUSE}
    for name in files:
        if name in texts:
            found.add(name)
        elif name.startswith("src/"):
            found |= {test for test, text in texts.items() if any(one in text for one in import_texts(name))}
            found |= {test for test in texts if is_about(Path(test).parts[2:-1], Path(name).parts[2:-1])}
        elif name.endswith(".py"):
            stem = Path(name).stem
            found |= {test for test, text in texts.items() if f"import {stem}\n" in text or f".{stem} import" in text}
    return sorted(found)


def is_about(tests: tuple[str, ...], changed: tuple[str, ...]) -> bool:
    """True if a folder of tests is that of a changed folder, or of one above it."""
    return bool(tests) and changed[: len(tests)] == tests


def import_texts(name: str) -> tuple[str, str]:
    """The two ways in which a test imports the module: as a whole, or from its package."""
    parts = Path(name).with_suffix("").parts[1:]
    return ".".join(parts), f"from {'.'.join(parts[:-1])} import {parts[-1]}\n"


def run(command: Sequence[str]) -> str | None:
    """The name of the tool when it failed; its output is shown only then."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        print(f"{done.stdout[-8000:]}{done.stderr[-2000:]}", end="")
    return " ".join(command[:3]) if done.returncode else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
