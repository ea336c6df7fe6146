"""`make test` runs failed functional and cluster tests a second time."""

from pathlib import Path

import pytest
import test_all
from test_all import Outcome

TESTS = """
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range({flaky}))
def test_flaky(number: int) -> None:
    tried = Path(__file__).with_name(f"tried-{{number}}")
    tried.touch() if (first := not tried.exists()) else None
    assert not first


def test_broken() -> None:
    assert {sound}


def test_good() -> None:
    with Path(__file__).with_name("good").open("a") as file:
        file.write("run ")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(test_all, "RESULTS", tmp_path)
    monkeypatch.setattr(test_all, "ROOT", tmp_path)
    monkeypatch.setattr(test_all.leftovers, "reap_orphans", lambda _: None)
    monkeypatch.setenv("PATH", f"{test_all.BIN}:/usr/bin:/bin")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(folder: Path, flaky: int, sound: bool = True) -> Outcome:
    path = folder / "test_them.py"
    path.write_text(TESTS.format(flaky=flaky, sound=sound))
    part = test_all.pytest_part("registry", (str(path),), network=True, again=True)
    outcomes: list[Outcome] = []
    test_all.run_parts([part], [], None, outcomes)
    return outcomes[0]


def test_what_passes_at_the_second_try_counts_and_is_listed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Guards the names: a test that needs two tries must not be lost sight of, and the others run once."""
    outcome = run(folder, flaky=1)
    assert (outcome.passed, outcome.failed) == (3, 0)
    assert (folder / "good").read_text() == "run "
    assert test_all.report([outcome], 60.0) == 0
    shown = capfd.readouterr().out
    assert "passed at the second try" in shown and "  registry: test_them::test_flaky[0]" in shown
    assert "assert not first" in shown, "the first failure's output"


def test_what_fails_twice_has_failed(folder: Path) -> None:
    """Guards that the second try hides nothing that is broken."""
    outcome = run(folder, flaky=1, sound=False)
    assert (outcome.passed, outcome.failed, outcome.again) == (2, 1, ["test_them::test_flaky[0]"])


def test_of_many_failures_none_is_tried_again(folder: Path) -> None:
    """Guards the time that a broken run takes."""
    outcome = run(folder, flaky=test_all.MOST_AGAIN + 1)
    assert (outcome.passed, outcome.failed, outcome.again) == (2, test_all.MOST_AGAIN + 1, [])
    assert not (folder / "registry-again.xml").exists()


def test_only_functional_and_cluster_parts_have_a_second_try() -> None:
    """Guards unit tests: what they do depends on nothing but the code."""
    parts = {part.name: part.again for part in (*test_all.PARTS, *test_all.QUICK, *test_all.ALL)}
    assert {name for name, again in parts.items() if again} == {*("functional", "cluster", "cluster-last")}


def test_what_makes_a_node_short_of_memory_runs_when_all_else_has_ended(folder: Path) -> None:
    """Guards `status` of other nodes: containers of one kernel all show the pressure that one of them makes."""
    log = folder / "order"

    def part(name: str, lane: str, before: str = "true") -> test_all.Part:
        return test_all.Part(
            name, (("sh", "-c", f"until {before}; do sleep 0.01; done; echo {name} >>{log}"),), lane=lane
        )

    parts = [part("layers", test_all.LAST), part("lint", "one", f"[ -s {log} ]"), part("types", "two")]
    test_all.run_parts(parts, [], None, [])
    assert log.read_text().split() == ["types", "lint", "layers"]
    alone = {name for part in test_all.ALL if part.lane == test_all.LAST for name in part.commands[0]}
    assert set(test_all.ALONE) <= alone
