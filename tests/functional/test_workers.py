"""Forks of one pytest process that share the unit tests: tests/unit/workers.py."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

TESTS = Path(__file__).parents[1]
FILE = """
import os, signal, pytest

@pytest.fixture(scope="module")
def place(tmp_path_factory):
    yield tmp_path_factory.mktemp("place")
    open({log!r}, "a").write("ended ")

@pytest.mark.parametrize("number", range(5))
def test_one(place, number):
    print(f"printed by {name} {{number}}")
    assert number != {fails}
    {last}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text("from unit.workers import pytest_addoption, pytest_runtestloop\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\naddopts = --import-mode=importlib\n")
    return tmp_path


def run(folder: Path, *words: str, fails: int = -1, last: str = "") -> tuple[subprocess.CompletedProcess[str], str]:
    """Four files of five tests; `fails`, `last`: of the third. Also the log of what fixtures' ends wrote."""
    log = folder / "log"
    for name in "abcd":
        special = {"fails": fails, "last": last} if name == "c" else {"fails": -1, "last": ""}
        (folder / f"test_{name}.py").write_text(FILE.format(log=str(log), name=name, **special))
    argv = [sys.executable, "-m", "pytest", "-q", "--workers=2", "--junitxml=out.xml", *words]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60)
    return done, log.read_text() if log.exists() else ""


def test_each_test_runs_once_and_fixtures_end(folder: Path) -> None:
    """Guards the count that `make test` prints, and what module fixtures clean up."""
    done, log = run(folder)
    assert (done.returncode, log) == (0, "ended " * 4)
    cases = [
        f"{one.get('classname')} {one.get('name')}" for one in ElementTree.parse(folder / "out.xml").iter("testcase")
    ]
    assert sorted(cases) == [f"test_{name} test_one[{number}]" for name in "abcd" for number in range(5)]


def test_a_failure_is_shown_with_its_output(folder: Path) -> None:
    """Guards that a failure in a fork is a failure of the run, with the values and the output of that test alone."""
    done, _ = run(folder, fails=3)
    assert (done.returncode, "19 passed" in done.stdout and "1 failed" in done.stdout) == (1, True), done.stdout
    assert "assert 3 != 3" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("printed by")] == ["printed by c 3"]


def test_the_first_failure_stops_all(folder: Path) -> None:
    """Guards `make unit ARGS=-x`: the other fork stops, too."""
    done, _ = run(folder, "-x", fails=0, last="import time; time.sleep(600)")
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout


def test_a_killed_fork_fails_the_run(folder: Path) -> None:
    """Guards against tests that are lost and nobody notices."""
    done, _ = run(folder, last="os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode not in (0, 1) and "a worker ended with status -9" in done.stdout + done.stderr
