"""Running the sh scripts of commands/ on this machine, in a folder that represents a node."""

import contextlib
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sparkwright.domain.command import Command, Completed

SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]


@dataclass(frozen=True)
class Sh:
    """`home` is the node's home and its lock folder; shell: what represents `sh` (bash in its sh mode)."""

    home: Path
    shell: str = "sh"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "SPARKWRIGHT_LOCK_DIR": str(self.home)}

    def argv(self, command: Command) -> list[str]:
        shell = [self.shell, "--posix"] if self.shell == "bash" else [self.shell]
        return [*shell, *command.argv[1:]]

    def start(self, command: Command) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.argv(command),
            env=self.environ,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        """Ends it with all that it started in its session: whatever holds a pipe open would be waited for."""
        for folder in Path("/proc").glob("[0-9]*"):  # `timeout` has a group of its own
            with contextlib.suppress(OSError):
                if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == process.pid:
                    os.kill(int(folder.name), signal.SIGKILL)
        process.communicate()

    def run(self, command: Command) -> Completed:
        process = self.start(command)
        out, err = process.communicate((command.stdin or b"").decode(), timeout=120)
        return Completed(process.returncode, out, err)
