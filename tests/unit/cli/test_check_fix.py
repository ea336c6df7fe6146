"""`check --fix` and `--undo` at a terminal: what is asked, what yes and no mean, and which options go together."""

import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from fakes.clock import FakeClock
from sparkwright.app.check.fix import WantedFix
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.cli.check_fix import proposal_text, typed_commands
from sparkwright.cli.main import run
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.finding import Rights
from sparkwright.ports import Sink
from sparkwright.remote import repair
from unit.app.check.test_fix import WANTED, Tunable
from unit.app.scene import ClusterScene, cluster

Call = Callable[..., tuple[int, str, str]]


class TerminalInput(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def tunable_scene(monkeypatch: pytest.MonkeyPatch) -> ClusterScene:
    """Two nodes that want one change each."""
    clock = FakeClock()
    made = ClusterScene([Tunable(f"spark-{n}", clock=clock) for n in (1, 2)], clock)

    @asynccontextmanager
    async def services(_: Cluster, __: ClusterOptions, sink: Sink) -> AsyncIterator[Services]:
        yield replace(made.services, sink=sink)

    monkeypatch.setattr("sparkwright.wiring.services", services)
    monkeypatch.setattr("sparkwright.wiring.cluster_of", lambda *_: cluster())
    return made


@pytest.fixture
def call_check(tunable_scene: ClusterScene, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> Call:
    def calling(*words: str, answer: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", TerminalInput(answer))
        code = run(["check", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return calling


def values(here: ClusterScene) -> list[str]:
    return [node.value for node in here.nodes if isinstance(node, Tunable)]


def test_yes_makes_the_changes_and_no_makes_none(tunable_scene: ClusterScene, call_check: Call) -> None:
    """Guards the one question: it names how much on how many nodes and the way back, and its default is no."""
    code, out, err = call_check("--fix", "--only", "MEM009", answer="\n")
    assert (code, values(tunable_scene)) == (130, ["67584", "67584"])
    assert "2 changes on 2 nodes; `sparkwright check --undo` takes them back. Make them? [y/N]" in err
    assert out.startswith("spark-1, spark-2\n  MEM009  vm.min_free_kbytes = 3145728")
    code, out, _ = call_check("--fix", "--only", "MEM009", answer="y\n")
    assert (code, values(tunable_scene)) == (call_check()[0], [WANTED, WANTED])
    assert "done     MEM009  spark-1, spark-2: vm.min_free_kbytes = 3145728" in out
    assert "all 2 nodes answered" in out


def test_nothing_to_fix_is_reported_and_is_good(tunable_scene: ClusterScene, call_check: Call) -> None:
    """Guards the second call: no question, and the exit code of check itself."""
    call_check("--fix", "--yes")
    code, out, err = call_check("--fix")
    assert (code, "nothing to change by --fix" in out, "Make them?" in err) == (call_check()[0], True, False)


def test_undo_asks_too(tunable_scene: ClusterScene, call_check: Call) -> None:
    """Guards the way back: shown, asked for, done."""
    call_check("--fix", "--yes")
    code, out, err = call_check("--undo", answer="y\n")
    assert (code, values(tunable_scene)) == (0, ["67584", "67584"])
    assert "back from: vm.min_free_kbytes = 3145728 (67584 before), now and at each boot (anna@laptop, 20" in out
    assert "2 changes on 2 nodes. Make them? [y/N]" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--fix", "--undo"), "--fix and --undo are two calls"),
        (("--fix", "--deep"), "--fix and --deep are two calls"),
        (("--yes",), "go with --fix or --undo"),
        (("--ask-become-pass",), "go with --fix or --undo"),
        (("--only", "MEM009"), "go with --fix or --undo"),
        (("--break-lease",), "goes with --fix, --undo or --deep"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_mean_nothing_together_are_2(call_check: Call, words: tuple[str, ...], told: str) -> None:
    """Guards against a --yes or --only that would be passed over in silence."""
    code, _, err = call_check(*words)
    assert (code, told in err) == (2, True)


def test_root_types_no_sudo() -> None:
    """Guards the shown commands for a node that is entered as root."""
    fix = repair.mask_fix("a", ["sleep.target"])
    assert typed_commands(WantedFix("HOST012", fix, Rights())) == ["sudo systemctl mask sleep.target"]
    assert typed_commands(WantedFix("HOST012", fix, Rights(root=True))) == ["systemctl mask sleep.target"]


def test_what_cannot_be_done_from_here_is_apart() -> None:
    """Guards that the user sees before the question what will be left to him, and why."""
    fix = repair.mask_fix("a", ["sleep.target"])
    told = proposal_text([WantedFix("HOST012", fix, Rights(why="sudo is not installed there"))]).splitlines()
    assert told[1] == "  not done from here, these need root: sudo is not installed there. By hand:"
    assert told[3].strip() == "sudo systemctl mask sleep.target"
