"""The real command as a user's shell starts it, with a home and a temporary folder of the test's own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fakes.processes import command_lines
from functional.warm import WarmCommand, exit_code
from patience import CALL, PATIENCE

COMMAND = (sys.executable, "-m", "sparkwright")
COLD = bool(os.environ.get("SPARKWRIGHT_TESTS_COLD"))
WARM = WarmCommand()
_SAID = 4000  # characters of a late command's stderr


def run_warm(
    words: Sequence[str], environ: Mapping[str, str], folder: Path, stdin: str | None = None, seconds: float = CALL
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; both are pipes, read to their end, as `communicate` does.

    TimeoutError after `seconds`, with what the command had said until then: whether it got on or hung.
    """
    asks, answers = os.pipe() if stdin is not None else (os.open(os.devnull, os.O_RDONLY), -1)
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    try:
        started = WARM.start(words, environ, folder, (asks, to_out, to_err))
    finally:
        for end in (asks, to_out, to_err):
            os.close(end)
    with ThreadPoolExecutor(3) as pool:
        if stdin is not None:
            pool.submit(write_stdin, answers, stdin)
        texts = [pool.submit(read_all, end) for end in (out, err)]
        try:
            code = exit_code(started, seconds)
        except TimeoutError:
            said = texts[1].result(seconds)[-_SAID:]
            raise TimeoutError(f"not done within {seconds:g} s; stderr until then ends with\n{said}") from None
        return code, texts[0].result(seconds), texts[1].result(seconds)


def write_stdin(end: int, text: str) -> None:
    with contextlib.suppress(BrokenPipeError), open(end, "w") as file:
        file.write(text)


def read_all(end: int) -> str:
    with open(end) as file:
        return file.read()


class UserShell:
    """Everything that the command makes lies below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        self.environ = {**keep, "HOME": str(folder), "TMPDIR": str(self.temporary)}

    def start(self, *words: str, stdin: int = subprocess.DEVNULL, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *words],
            env={**self.environ, **environ},
            cwd=self.folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, stdin: str | None = None, seconds: float = CALL, **environ: str) -> tuple[int, str, str]:
        """Runs in a warm process if there is one: see `functional.warm`. Killed after `seconds`."""
        if COLD:
            process = self.start(*words, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, **environ)
            out, err = process.communicate(stdin, timeout=seconds)
            return process.returncode, out, err
        return run_warm(words, {**self.environ, **environ}, self.folder, stdin, seconds)

    def interrupted(self, marker: str, number: signal.Signals, *words: str) -> tuple[int, str]:
        """Sends the signal once a line on stderr holds the marker; exit code and stderr."""
        with self.start(*words) as process:  # closes its pipes, also after a failure
            assert process.stderr and process.stdout
            said = ""
            try:
                for line in process.stderr:
                    said += line
                    if marker in line:
                        break
                process.send_signal(number)
                _, rest = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
        return process.returncode, said + rest

    def clean(self) -> None:
        """Ends what a failed test has left: every process that carries this folder in its environment."""
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(entry.name) != os.getpid() and bytes(self.folder) in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    @property
    def left(self) -> list[str]:
        """Processes that carry this folder in their command line, and files of demonstrations."""
        mine = [line for line in command_lines() if str(self.folder) in line]
        return mine + [str(path) for path in self.temporary.iterdir()]
