"""The real command as a user's shell starts it, with a home and a temporary folder of the test's own."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from fakes.processes import command_lines

COMMAND = (sys.executable, "-m", "sparkwright")


class Shell:
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

    def run(self, *words: str, stdin: str | None = None, **environ: str) -> tuple[int, str, str]:
        process = self.start(*words, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, **environ)
        out, err = process.communicate(stdin, timeout=180)
        return process.returncode, out, err

    def interrupted(self, marker: str, number: signal.Signals, *words: str) -> tuple[int, str]:
        """Sends the signal once a line on stderr holds the marker; exit code and stderr."""
        process = self.start(*words)
        assert process.stderr and process.stdout
        said = ""
        for line in process.stderr:
            said += line
            if marker in line:
                break
        process.send_signal(number)
        try:
            _, rest = process.communicate(timeout=60)
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
