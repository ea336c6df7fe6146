"""The command in a process of its own: how it starts, what its pipes are for, how it ends."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.command import COMMAND, UserShell

HEAVY = ("asyncio", "httpx", "pydantic", "rich", "yaml", "sparkwright.wiring", "sparkwright.app")


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    made = UserShell(tmp_path)
    yield made
    made.clean()


def test_help_imports_nothing_heavy() -> None:
    """`sparkwright --help` answers at once: each of these costs a tenth of a second or more."""
    code = "import sys; from sparkwright.cli.main import run; run(['--help']); print([m for m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert [name for name in HEAVY if f"'{name}'" in loaded] == []


def test_python_m_is_the_same_command(user_shell: UserShell) -> None:
    """The module works if no script is on the PATH."""
    code, out, err = user_shell.run("--version")
    assert (code, out[:21], err) == (0, "sparkwright, version ", "")


def test_exit_codes_reach_the_shell(user_shell: UserShell) -> None:
    """Scripts inspect nothing else."""
    assert user_shell.run("stauts")[0] == 2
    assert user_shell.run("check")[0] == 2
    code, out, err = user_shell.run("plan", "twin", "--cluster", "nowhere.yaml")
    assert (code, out) == (2, "")
    assert "nowhere.yaml" in err and "Traceback" not in err


def test_an_ignored_code_that_no_finding_has_is_an_error_in_every_command(user_shell: UserShell) -> None:
    """A typing mistake would ignore nothing for ever: reported at load, with the nearest code."""
    (user_shell.folder / "cluster.yaml").write_text("nodes: [a]\nignore: [MEM099]\n")
    for words in (["check"], ["status"], ["plan", "twin"], ["down", "x"], ["facts"], ["recipes", "inventory"]):
        code, _, err = user_shell.run(*words)
        assert code == 2
        assert "cluster.yaml: ignore: no finding has the code 'MEM099'" in err and "did you mean MEM0" in err


def test_a_malformed_cluster_file_is_reported_by_line(user_shell: UserShell) -> None:
    """File, line, and the nearest right key."""
    (user_shell.folder / "cluster.yaml").write_text("nodes:\n  - name: a\n    fabrik: {}\n")
    for words in (["check"], ["status"], ["down", "x"], ["facts"]):
        code, _, err = user_shell.run(*words)
        assert code == 2
        assert err.startswith("error: ") and "cluster.yaml:3" in err and "fabric" in err


@pytest.mark.parametrize("verb", [["check"], ["facts"], ["plan", "twin"], ["up", "twin"], ["down", "twin"], ["status"]])
def test_an_unreachable_node_is_3_with_a_hint_and_no_traceback(user_shell: UserShell, verb: list[str]) -> None:
    """A name that cannot be resolved, for every verb that talks to nodes."""
    (user_shell.folder / "cluster.yaml").write_text("nodes: [no-such-host.invalid, nor-this.invalid]\n")
    code, out, err = user_shell.run(*verb)
    assert code == 3, err
    assert "no-such-host.invalid" in out + err
    assert "Traceback" not in err
    assert verb != ["status"] or "hint:  sparkwright check" in err


def test_a_reader_who_leaves_is_no_error(user_shell: UserShell) -> None:
    """`sparkwright ... | head` ends quietly, also when it has much more to report."""
    read, write = os.pipe()
    os.close(read)
    words = [*COMMAND, "recipes", "show", "--reference"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, env=user_shell.environ, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "where", "ends"),
    [
        ("recipes list", ">&-", (0, "")),
        ("runs list", "<&- >&- 2>&-", (0, "")),
        ("runs show none", ">&-", (2, "error: no run none")),
        ("runs list --json", ">/dev/full", (2, "error: the output cannot be written: No space left on device\n")),
    ],
)
def test_what_cannot_be_reported_is_no_bug_of_ours(
    user_shell: UserShell, words: str, where: str, ends: tuple[int, str]
) -> None:
    """Streams that the caller has closed, and a file on a full disk: the exit code holds, without a traceback."""
    command = f"{' '.join(COMMAND)} {words} {where}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=user_shell.environ, timeout=60)
    assert (done.returncode, done.stdout) == (ends[0], "")
    assert done.stderr.startswith(ends[1]) and "Traceback" not in done.stderr


def test_colours_are_for_terminals_only(user_shell: UserShell) -> None:
    """Piped: none. On a terminal: yes. With NO_COLOR: none."""
    assert "\x1b" not in "".join(map(str, user_shell.run("recipes", "list")))
    assert "\x1b[31m" in on_terminal(user_shell, "check")
    assert "\x1b" not in on_terminal(user_shell, "check", NO_COLOR="1")
    assert "\x1b[31m" in on_terminal(user_shell, "check", NO_COLOR="")


def on_terminal(shell: UserShell, *words: str, **environ: str) -> str:
    """The command's output on a terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], stdin=side, stdout=side, stderr=side, env={**shell.environ, "TERM": "xterm", **environ}
    )
    os.close(side)
    said = b""
    try:
        while chunk := os.read(main, 4096):
            said += chunk
    except OSError:  # the terminal's other end is closed: the command has ended
        process.wait(timeout=60)
    os.close(main)
    return said.decode()


def test_json_is_all_that_is_on_stdout(user_shell: UserShell) -> None:
    """The output stays the same for lists that a terminal would get as a table."""
    code, out, err = user_shell.run("recipes", "list", "--json")
    assert (code, err) == (0, "")
    assert {row["name"] for row in json.loads(out)["recipes"]} >= {"simulator", "deepseek-v4-flash"}
