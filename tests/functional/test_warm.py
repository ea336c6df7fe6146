"""The warm command of the tests is the command: same output, exit code, environment, folder and signals."""

import os
import signal
import time
from pathlib import Path

import pytest

from functional.command import WARM, UserShell, run_warm
from functional.warm import exit_code
from sparkwright.cli.main import VERBS

CALLS = {
    "usage error": ("plan", "--no-such-option"),
    "unknown verb": ("pan",),
    "refusal": ("plan", "no-such-recipe"),
    "refusal as JSON": ("plan", "no-such-recipe", "--json"),
    "result": ("explain", "MEM001"),
    "file of this folder": ("recipes", "validate", "./no-such.yaml"),
}


def run_cold(shell: UserShell, *words: str, stdin: str | None = None, **environ: str) -> tuple[int, str, str]:
    process = shell.start(*words, stdin=-3 if stdin is None else -1, **environ)
    out, err = process.communicate(stdin, timeout=60)
    return process.returncode, out, err


@pytest.mark.each_row
@pytest.mark.parametrize("words", CALLS.values(), ids=CALLS)
def test_a_warm_call_and_a_new_process_say_the_same(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Guards all tests that use the warm command."""
    shell = UserShell(tmp_path)
    assert shell.run(*words) == run_cold(shell, *words)


@pytest.mark.full
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_starts_as_a_process_of_its_own(tmp_path: Path, verb: str) -> None:
    """Guards the start of each verb: a module that only works when another verb was imported before."""
    shell = UserShell(tmp_path)
    done = run_cold(shell, verb, "--help")
    assert done[0] == 0
    assert done == shell.run(verb, "--help")


def test_stdin_and_environment_reach_a_warm_call(tmp_path: Path) -> None:
    """Guards what a test gives to one call: it is there, and gone at the next call."""
    shell = UserShell(tmp_path)
    text = "OSError: [Errno 28] No space left on device\n"
    assert shell.run("diagnose", "-", stdin=text) == run_cold(shell, "diagnose", "-", stdin=text)
    wide, narrow = shell.run("--help", COLUMNS="110"), shell.run("--help", COLUMNS="60")
    assert wide == run_cold(shell, "--help", COLUMNS="110")
    assert narrow == run_cold(shell, "--help", COLUMNS="60")
    assert wide != narrow
    assert shell.run("--help") == run_cold(shell, "--help")


def test_a_signal_ends_a_warm_call(tmp_path: Path) -> None:
    """Guards tests that stop a call: it is a process, and its exit code says by which signal it ended."""
    with open(os.devnull, "r+") as nowhere:
        asks, answers = os.pipe()
        started = WARM.start(
            ("diagnose", "-"), UserShell(tmp_path).environ, tmp_path, (asks, nowhere.fileno(), nowhere.fileno())
        )
        os.kill(started[0], signal.SIGKILL)
        assert exit_code(started, 60) == -signal.SIGKILL
        os.close(asks)
        os.close(answers)


def test_a_warm_call_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """Guards the suite against a call that hangs: the test fails, and no process is left."""
    with open(os.devnull, "r+") as nowhere:
        asks, answers = os.pipe()
        streams = (asks, nowhere.fileno(), nowhere.fileno())
        started = WARM.start(("diagnose", "-"), UserShell(tmp_path).environ, tmp_path, streams)
        with pytest.raises(TimeoutError):
            exit_code(started, 0.2)
        end = time.monotonic() + 60
        while Path(f"/proc/{started[0]}").exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert not Path(f"/proc/{started[0]}").exists()
        os.close(asks)
        os.close(answers)


def test_run_warm_reads_both_streams_to_their_end(tmp_path: Path) -> None:
    """Guards output larger than a pipe."""
    shell = UserShell(tmp_path)
    code, out, err = run_warm(("recipes", "show", "--reference"), shell.environ, tmp_path)
    assert (code, err) == (0, "")
    assert len(out) > 1 << 16 or out == run_cold(shell, "recipes", "show", "--reference")[1]
