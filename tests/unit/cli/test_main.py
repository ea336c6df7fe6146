"""The command itself: help, wrong arguments, and every kind of error as words and an exit code."""

import asyncio
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import click
import pytest

from sparkwright.cli import main as cli
from sparkwright.cli.main import VERBS, run
from sparkwright.domain import errors
from sparkwright.domain.finding import Finding, Severity
from unit.for_each import for_each

FINDING = Finding("MEM001", Severity.BLOCK, "spark-1", "does not fit", "119.7 GiB", "too large", "take @256k")


@pytest.fixture
def probe_verb(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A verb `probe` that does what the test states."""

    def install(work: Any) -> None:
        module = ModuleType("sparkwright.cli.probe")
        module.probe = click.command("probe")(work)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(VERBS, "probe", ("probe", "probe", "A probe."))

    return install


def raising(error: BaseException) -> Any:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (errors.UsageError("m", "c"), 2, ["error: m", "hint:  c"]),
        (errors.RecipeError("f.yaml:3: m"), 2, ["error: f.yaml:3: m"]),
        (errors.Unreachable("n1", "m", "c"), 3, ["error: n1: m", "hint:  c"]),
        (errors.CommandFailed("n1", "m"), 1, ["error: n1: m"]),
        (errors.StoreError("m", "c"), 2, ["error: m", "hint:  c"]),
        (errors.Busy("m", "c"), 4, ["error: m", "hint:  c"]),
        (errors.NotReady("m", "c", ("l1", "l2"), "/e"), 5, ["  | l1", "  | l2", "error: m", "logs:  /e", "hint:  c"]),
    ],
    ids=["usage", "recipe", "unreachable", "command", "store", "busy", "not-ready"],
)
def test_each_error_has_its_exit_code_and_one_clear_message(
    probe_verb: Any, capsys: Any, error: errors.SparkwrightError, code: int, lines: list[str]
) -> None:
    """Subject, what, hint; on stderr; never a traceback."""
    probe_verb(raising(error))
    assert run(["probe"]) == code
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()) == ("", lines)


def test_what_a_node_reported_cannot_move_the_cursor(probe_verb: Any, capsys: Any) -> None:
    """Guards the error, the engine's last lines and the findings; colors of ours are those of a terminal only."""
    evil = "\x1b[2J\x9b2J\u202ex"
    probe_verb(raising(errors.NotReady(evil, evil, (evil,))))
    run(["probe"])
    probe_verb(raising(errors.Refused(evil, [replace(FINDING, evidence=evil)])))
    run(["probe"])
    assert not set("\x1b\x9b\u202e") & set(capsys.readouterr().err)


def test_a_refusal_shows_its_findings_first(probe_verb: Any, capsys: Any) -> None:
    """The evidence, then the verdict."""
    probe_verb(raising(errors.Refused("twin: not started", [FINDING])))
    assert run(["probe"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "BLOCK    MEM001  spark-1: does not fit"
    assert lines[-1] == "error: twin: not started"


def test_errors_of_several_nodes_are_each_reported_once(probe_verb: Any, capsys: Any) -> None:
    """Tasks for many nodes end as a group of errors: that is expected trouble, not our bug."""
    two = [errors.Unreachable("n1", "gone"), errors.Unreachable("n2", "gone"), errors.Unreachable("n1", "gone")]
    probe_verb(raising(BaseExceptionGroup("tasks", [ExceptionGroup("inner", two)])))
    assert run(["probe"]) == 3
    assert capsys.readouterr().err.splitlines() == ["error: n1: gone", "error: n2: gone"]


@pytest.mark.parametrize(
    "error", [RuntimeError("oh"), BaseExceptionGroup("g", [errors.Busy("m"), ValueError("oh")])], ids=["one", "group"]
)
def test_our_own_bug_is_70_with_the_traceback_and_what_to_do(
    probe_verb: Any, capsys: Any, error: BaseException
) -> None:
    """An unexpected error exits with 70; known trouble next to it does not hide it."""
    probe_verb(raising(error))
    assert run(["probe"]) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said and "oh" in said
    assert said.splitlines()[-1].endswith(cli.ISSUE_HINT)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), click.Abort()])
def test_ctrl_c_is_130_without_a_word_too_much(probe_verb: Any, capsys: Any, error: BaseException) -> None:
    """Ctrl-C, or SIGTERM as cancellation."""
    probe_verb(raising(error))
    assert run(["probe"]) == 130
    assert capsys.readouterr().err.split() == ["stopped"]


def test_debug_shows_where_known_trouble_came_from(probe_verb: Any, capsys: Any) -> None:
    """The traceback is for a report to us; without --debug there is never one."""
    probe_verb(raising(errors.Busy("m")))
    assert run(["--debug", "probe"]) == 4
    assert "Traceback" in capsys.readouterr().err


def test_a_pipe_that_broke_elsewhere_is_a_bug(probe_verb: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a reader of our own output who has left is no failure: any other broken pipe must not look like success."""
    monkeypatch.setattr(cli, "_reader_left", lambda: False)
    probe_verb(raising(BrokenPipeError(32, "Broken pipe")))
    assert run(["probe"]) == 70


def test_wrong_words_name_the_nearest_right_ones(capsys: Any) -> None:
    """The message also names the place to read on."""
    assert run(["stauts"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no command 'stauts'; did you mean `status`?",
        "hint:  sparkwright --help",
    ]
    assert run(["xyzzy"]) == 2
    assert "commands: init, check, recipes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up"], "error: missing argument RECIPE[@PROFILE]"),
        (["up", "twin", "--dry-rn"], "error: no option --dry-rn; did you mean --dry-run"),
        (["logs", "twin", "--tail", "-1"], "error: --tail: found '-1', expected a whole number of at least 0"),
        (["status", "a", "b"], "error: got unexpected extra argument"),
    ],
)
def test_wrong_use_of_a_verb_is_2_in_the_same_shape(capsys: Any, words: list[str], message: str) -> None:
    """One line and the way to the help of that verb."""
    assert run(words) == 2
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith(message)
    assert last == f"hint:  sparkwright {words[0]} --help"


def test_no_words_show_the_help(capsys: Any) -> None:
    """The help goes to stderr, as for wrong use."""
    assert run([]) == 2
    assert "First time:" in capsys.readouterr().err


def test_help_lists_every_verb_in_one_line(capsys: Any) -> None:
    """The help also reports how to begin."""
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[0] for line in lines[lines.index("Commands:") + 1 :] if line.strip()]
    assert rows == list(VERBS)
    assert any("sparkwright demo" in line for line in lines)
    assert max(map(len, lines)) <= 100


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every verb, and every one below a group; with all its words."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from commands(below, f"{path} {name}")


def test_every_verb_has_help_with_an_example() -> None:
    """A verb's help has its purpose, its options, and a call that one can copy; 80 columns cut no line of the list."""
    for path, command in commands(cli.main, "sparkwright"):
        names = ["-h", "--help"]  # click remembers a command's first ones, also for the page of its reference
        context = click.Context(command, info_name=path, terminal_width=80, help_option_names=names)
        text = command.get_help(context)
        assert text.startswith(f"Usage: {path} ")
        assert "Example" in text or path == "sparkwright", path
        lines = text.splitlines()[1:]
        assert [line for line in lines if line.endswith("...")] == [], path


@for_each("name", VERBS)
def test_the_list_reports_what_the_verb_itself_reports(name: str) -> None:
    """Two texts about one thing drift apart."""
    verb = cli.main.get_command(click.Context(cli.main, **cli.main.context_settings), name)
    assert verb is not None
    first = (verb.help or "").split("\n\n")[0].replace("\n", " ")
    assert first.split(".")[0].split(":")[0].split(",")[0][:20] in VERBS[name][2] or name in ("recipes", "logs")


def test_version(capsys: Any) -> None:
    """A bug report names the commit, too, where git or the wheel knows it."""
    assert run(["--version"]) == 0
    said = capsys.readouterr().out
    assert re.fullmatch(r"sparkwright, version \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(-dirty)?\))?\n", said)
