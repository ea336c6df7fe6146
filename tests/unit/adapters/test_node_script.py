"""Scripts for nodes: what is text can be read here; that they work is the contract's matter."""

import shlex
import subprocess

import pytest

from sparkwright.adapters import node_script
from sparkwright.adapters.node_script import NodeScript, Output, ScriptSettings
from sparkwright.domain.command import Command, Secret

HERE = ScriptSettings((("HOME", "/home/it's"),), "~/state", "ann@laptop")


def test_argv_is_quoted_once() -> None:
    """The caller's words are in the script as one shell word each."""
    text = node_script.run(HERE, Command(("echo", "a b", "$x"), {"K": "v w"}, timeout=1.5)).text
    line = next(line for line in text.splitlines() if line.startswith("timeout"))
    assert shlex.split(line)[:8] == ["timeout", "-k", "2", "1.5", "env", "K=v w", "echo", "a b"]
    assert text.startswith("export HOME='/home/it'\"'\"'s'\n")


def test_only_what_changes_is_noted() -> None:
    """A reading command leaves the node's log alone, and only such a one may be sent again."""
    reading, changing = (node_script.run(HERE, Command(("true",), changes=what)) for what in ("", "start"))
    assert "audit.log" not in reading.text and reading.again
    assert "'ann@laptop start'" in changing.text and not changing.again


@pytest.mark.parametrize("size", [10, 200_000])
def test_a_script_stands_in_no_command_line(size: int) -> None:
    """It goes over stdin; for a login shell of any kind what it is called with is one short line of harmless words."""
    script = NodeScript("echo 'µ'\n" * size, b"m", 1.0)
    text, first = node_script.login_shell_line(script)
    assert first.decode() == script.text and f"bs={len(first)} " in text
    assert len(text) < 120 and "\n" not in text and "\\" not in text and "!" not in text
    argv, before = node_script.argv_of(script)
    assert before == first and len(" ".join(argv)) < 120


def test_a_command_s_own_script_stands_in_no_command_line() -> None:
    """`ps` shows a short shell with the script's arguments; a script that is lost ends with an error, not with 0."""
    long = "# 'quoted'\n" * 500 + 'printf %s "$1 ${SPARKWRIGHT_SCRIPT-none}"; cat'
    command = Command(("sh", "-c", long, "sparkwright", "it's"), stdin=b" given")
    script = node_script.run(HERE, command)
    line = next(line for line in script.text.splitlines() if "timeout -k" in line)
    words = line[line.index("timeout -k") :]
    assert len(words) < 200 and "it" in words
    argv, first = node_script.argv_of(script)
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write(first + script.stdin)
        process.stdin.flush()
        assert b"it's none given" in process.stdout.read()
    lost = subprocess.run(["sh", "-c", node_script._FROM_VARIABLE], capture_output=True, check=False)
    assert lost.returncode != 0


def test_marks_cannot_be_guessed() -> None:
    """Two scripts never have the same mark, so that no output can end another's."""
    assert node_script.run(HERE, Command(("true",))).mark != node_script.run(HERE, Command(("true",))).mark


@pytest.mark.parametrize(
    ("stdout", "code", "text"),
    [
        (b"MARK\nMARK 0\n", 0, ""),
        (b"noise\nMARK\nno endMARK 255\n", 255, "no end"),
        (b"MARK\nMARK in text\nMARK 3\nlater noise", 3, "MARK in text\n"),
    ],
)
def test_between_marks(stdout: bytes, code: int, text: str) -> None:
    """The last closing mark counts; what is outside the marks is nobody's output."""
    output = Output(bytearray(stdout), bytearray(b"MARK\nMARK 0\n"))
    done = node_script.read_run(NodeScript("", b"MARK", 9.0), output)
    assert (done.exit_code, done.stdout, done.stderr) == (code, text, "")


def test_end_is_seen_in_pieces() -> None:
    """The closing mark counts only when its exit code is whole, wherever the network cut it."""
    whole, seen = b"MARK\nout MARK 12\n", bytearray()
    complete = []
    for at in range(len(whole)):
        seen += whole[at : at + 1]
        complete.append(node_script.closed(seen, b"MARK", at))
    assert complete.index(True) == len(whole) - 1


def test_killed_after_its_time_is_a_timeout() -> None:
    """137 means KILL: after the command's time it was ours, before that somebody else's (out of memory)."""
    output = Output(bytearray(b"MARK\nMARK 137\n"), bytearray(), seconds=12.1)
    assert node_script.read_run(NodeScript("", b"MARK", 10.0), output).exit_code == 124
    assert node_script.read_run(NodeScript("", b"MARK", 60.0), output).exit_code == 137


def test_secret_shows_nowhere() -> None:
    """A secret that ends in a script by mistake is a mask."""
    assert "***" in node_script.run(HERE, Command(("echo", str(Secret("hush"))))).text
