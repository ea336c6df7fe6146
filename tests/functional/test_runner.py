"""`scripts/testing/test_all.py`: what runs, what counts, and how a run ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import test_all
import test_results
from test_all import ALL, QUICK, REST, SuitePart
from test_results import PartOutcome

from fakes.processes import command_lines

SCRIPTS = Path(__file__).parents[2] / "scripts" / "testing"
TESTS = """
from pathlib import Path
import pytest

@pytest.mark.full
@pytest.mark.parametrize("number", range(2))
def test_long(number: int) -> None:
    count()

def test_broken() -> None:
    count()
    assert {sound}

@pytest.mark.skipif({skip}, reason={reason!r})
def test_good() -> None:
    count()

def count() -> None:
    with Path(__file__).with_name("ran").open("a") as file:
        file.write("x")
"""
# A runner whose only part never ends by itself.
ENDLESS = """
import sys, pathlib, test_all, test_results
for module in (test_all, test_results):
    module.RESULTS = module.ROOT = pathlib.Path({folder!r})
test_results.SUMMARY, test_results.DURATIONS = module.ROOT / "summary.json", module.ROOT / "durations.json"
test_all.SINGLE = (test_all.pytest_part("registry", ({path!r},), network=True, workers=2),)
sys.exit(test_all.main(["registry", "-p", "no:cacheprovider"]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (test_all, test_results):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(test_results, "SUMMARY", tmp_path / "summary.json")
    monkeypatch.setattr(test_results, "DURATIONS", tmp_path / "durations.json")
    monkeypatch.setattr(test_all.leftovers, "reap_orphans", lambda _: None)
    monkeypatch.setenv("PATH", f"{test_all.BIN}:/usr/bin:/bin")
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = full\n")
    return tmp_path


def run(folder: Path, sound: bool = True, skip: str = "", marks: str = "", part: str = "registry") -> PartOutcome:
    path = folder / "test_them.py"
    path.write_text(TESTS.format(sound=sound, skip=bool(skip), reason=skip))
    outcomes: list[PartOutcome] = []
    test_all.run_parts([test_all.pytest_part(part, (str(path),), network=True, marks=marks)], [], None, outcomes)
    return outcomes[0]


def counts(outcome: PartOutcome) -> tuple[int, int, int]:
    return outcome.passed, outcome.failed, outcome.skipped


def test_a_failed_test_fails_the_run_and_is_not_tried_again(folder: Path) -> None:
    """Guards against races that a second try would hide."""
    outcome = run(folder, sound=False)
    assert (counts(outcome), (folder / "ran").read_text()) == ((3, 1, 0), "xxxx")
    assert test_results.finish("make registry", [outcome], 60.0, None) == 1


@pytest.mark.full
def test_the_two_halves_of_a_full_run_run_each_test_once(folder: Path) -> None:
    """Guards `.ci/run`: nothing is lost and nothing is run twice."""
    assert counts(run(folder, marks="not full")) == (2, 0, 0)
    assert counts(run(folder, marks="full")) == (2, 0, 0)
    assert (folder / "ran").read_text() == "xxxx"


def test_quick_and_rest_are_the_full_run() -> None:
    """Guards `make test` and `make test-rest`: together they run the folders of `make test-full`, by opposite marks."""
    marks = {}
    for part in (*QUICK, *REST):
        folder = part.commands[0][-1] if part.tests else part.name
        marks.setdefault(folder, []).append(part.marks)
    assert marks.pop("tests/unit") == ["not full", "full and not house"]
    assert (marks.pop("tests/unit/test_house.py"), marks.pop("tests/registry")) == ([""], [""])
    tools = [part.name for part in ALL if not part.tests]
    assert [marks.pop(name) for name in tools] == [[""]] * len(tools)
    assert marks.pop(test_all.ALONE[0]) == ["full"]
    assert marks and all(both == ["not full", "full"] for both in marks.values())
    assert {part.commands[0][-1] for part in ALL if part.tests} == {
        *marks,
        *test_all.ALONE,
        "tests/unit",
        "tests/registry",
    }


@pytest.mark.parametrize(
    ("words", "command", "parts", "rest"),
    [
        ([], "make test", QUICK, []),
        (["--full"], "make test-full", ALL, []),
        (["--rest"], "make test-rest", REST, []),
        (["unit", "-k", "planner", "-x"], "make unit", (test_all.UNIT,), ["-k", "planner", "-x"]),
    ],
)
def test_what_the_words_choose(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    command: str,
    parts: tuple[SuitePart, ...],
    rest: list[str],
) -> None:
    """Guards the Makefile's targets and their ARGS."""
    seen: list[object] = []
    monkeypatch.setattr(test_all, "run_and_report", lambda *given: seen.append(given) or 0)
    assert test_all.main(words) == 0
    assert seen == [(command, list(parts), rest, None)]


def test_a_run_after_another_takes_its_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `.ci/run`: without the result of `make test` the whole has failed."""
    seen: list[object] = []
    monkeypatch.setattr(test_all, "run_and_report", lambda *given: seen.append(given[-1]) or 0)
    summary = folder / "summary.json"
    assert test_all.main(["--rest", "--after", str(summary)]) == 1
    test_results.finish("make test", [PartOutcome("unit", passed=1)], 1.0, None)
    assert test_all.main(["--rest", "--after", str(summary)]) == 0
    assert [run and run.command for run in seen] == [None, "make test"]


@pytest.mark.full
def test_a_part_without_full_tests_is_no_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `make test-rest` in CI, where a part that finds no test at all has failed."""
    monkeypatch.setenv("CI", "true")
    (folder / "test_none.py").write_text("def test_it() -> None: ...\n")
    outcomes: list[PartOutcome] = []
    paths = (str(folder / "test_none.py"),)
    parts = [test_all.pytest_part("a", paths, marks="full"), test_all.pytest_part("b", paths, marks="no")]
    test_all.run_parts(parts, [], None, outcomes)
    assert [counts(outcome) for outcome in outcomes] == [(0, 0, 0), (0, 1, 0)]


@pytest.mark.parametrize(
    ("reason", "in_ci"), [("hardware: no GPU", (3, 0, 1)), ("data: absent", (3, 0, 1)), ("no docker", (3, 1, 0))]
)
def test_in_ci_only_hardware_and_data_may_be_skipped(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reason: str, in_ci: tuple[int, int, int]
) -> None:
    """Guards CI against tests that quietly stop running."""
    assert counts(run(folder, skip=reason)) == (3, 0, 1)
    monkeypatch.setenv("CI", "true")
    assert counts(run(folder, skip=reason)) == in_ci


@pytest.mark.full
def test_the_summary_adds_up_both_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Guards the closing line of `.ci/run`, and that a failure of the first run fails the whole."""
    assert test_results.finish("make test", [run(folder, sound=False, marks="not full", part="quick")], 60.0, None) == 1
    first = test_results.load(test_results.SUMMARY)
    assert test_results.finish("make test-rest", [run(folder, marks="full", part="rest")], 30.0, first) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "3 passed, 1 failed, 0 skipped"
    stored = json.loads(test_results.SUMMARY.read_text())
    assert (stored["command"], stored["seconds"]) == ("make test + make test-rest", 90.0)
    assert [outcome["part"] for outcome in stored["outcomes"]] == ["quick", "rest"]
    assert len(stored["slowest"]) == 4 and all(outcome["cpu"] > 0 for outcome in stored["outcomes"])


def test_a_duration_is_recorded_only_from_a_whole_run(folder: Path) -> None:
    """Guards the one figure in the documentation."""
    page, summary = folder / "page.md", folder / "summary.json"
    page.write_text("# Tests\n- `make test`: unknown\n- `make test-full`: unknown\n")
    good = PartOutcome("unit", passed=1, cpu=100.0)
    test_results.finish("make test", [good, PartOutcome("house", failed=1)], 600.0, None)
    assert test_results.record(page, summary) == 1 and page.read_text().count("unknown") == 2
    test_results.finish("make test", [good], 600.0, None)
    assert test_results.record(page, summary) == 0
    assert page.read_text().splitlines()[1].startswith("- `make test`: 10.0 minutes on ")
    test_results.finish("make unit", [good], 600.0, None)
    assert test_results.record(page, summary) == 1 and page.read_text().count("10.0") == 1


def test_a_full_disk_is_reported_before_anything_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    """Guards against hundreds of failures whose cause is one full folder."""
    monkeypatch.setattr(test_all, "prepare_environment", lambda: None)
    monkeypatch.setattr(test_all, "MIN_FREE", 1 << 60)
    part = SuitePart("unit", (("touch", str(folder / "ran")),), tests=True)
    assert test_all.run_and_report("make unit", [part], [], None) == 1
    assert "MiB free" in capfd.readouterr().err and not (folder / "ran").exists()


class EndsAfterOneWait(threading.Event):
    """Its first wait is over at once and in vain: no clock decides how many lines are printed."""

    def wait(self, timeout: float | None = None) -> bool:
        ended = self.is_set()
        self.set()
        return ended


def test_progress_names_what_runs_and_how_far_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    """Guards who waits for a run of minutes."""
    path = folder / "unit.progress"
    path.write_text(json.dumps([12, 40, ["tests/unit/test_a.py", "tests/unit/test_b.py"], 0]))
    monkeypatch.setattr(test_all, "RUNNING", {"unit": path, "types": folder / "none"})
    test_all.tell_progress(EndsAfterOneWait())
    assert "types | unit 12 of 40 (a, b)" in capfd.readouterr().out
    path.write_text(json.dumps([13, 40, ["tests/unit/test_b.py"], 2]))
    monkeypatch.setattr(test_all, "ROOT", folder)
    assert test_all.progress_of(path) == " 13 of 40, 2 failed: see unit.failed (b)"


def test_what_makes_a_node_short_of_memory_runs_when_all_else_has_ended(folder: Path) -> None:
    """Guards `status` of other nodes: containers of one kernel all show the pressure that one of them makes."""
    log = folder / "order"

    def part(name: str, lane: str, before: str = "true") -> SuitePart:
        return SuitePart(name, (("sh", "-c", f"until {before}; do sleep 0.01; done; echo {name} >>{log}"),), lane=lane)

    parts = [part("layers", test_all.LAST), part("lint", "one", f"[ -s {log} ]"), part("types", "two")]
    test_all.run_parts(parts, [], None, [])
    assert log.read_text().split() == ["types", "lint", "layers"]
    alone = {name for part in test_all.ALL if part.lane == test_all.LAST for name in part.commands[0]}
    assert set(test_all.ALONE) <= alone


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_runner_alone_ends_all_that_it_started(tmp_path: Path, number: signal.Signals) -> None:
    """Guards a machine on which somebody stops a run: nothing goes on testing."""
    marker, log = f"{time.time_ns()}.25", tmp_path / "log"
    for name in "ab":
        (tmp_path / f"test_{name}.py").write_text(
            f"import subprocess\n\ndef test_it(): subprocess.run(['sleep', '{marker}'])\n"
        )
    (tmp_path / "conftest.py").write_text(
        "from workers import pytest_addoption, pytest_configure, pytest_runtestloop\n"
    )
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {test_all.TESTS}\naddopts = --import-mode=importlib\n"
    )
    (tmp_path / "run.py").write_text(ENDLESS.format(path=str(tmp_path), folder=str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    with log.open("w") as output:
        runner = subprocess.Popen(
            [sys.executable, tmp_path / "run.py"], stdout=output, stderr=output, env=environment, start_new_session=True
        )
    try:
        wait_until(lambda: sum(marker in line for line in command_lines()) == 2 or runner.poll() is not None, log)
        runner.send_signal(number)
        runner.wait(180)
    finally:
        runner.kill()
    assert runner.returncode == 1 and "interrupted" in log.read_text(), log.read_text()
    wait_until(lambda: not any(marker in line for line in command_lines()), log)


def wait_until(done, log: Path) -> None:
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.02)
