"""Real simulator processes on loopback addresses, at full speed, each with its log in a file."""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from patience import PATIENCE
from simulators.__main__ import PROGRAMS

TOOLS = str(Path(__file__).parents[3] / "tools")
CAPTURES = Path(__file__).parents[2] / "data" / "captures" / "twin"
HEAD_ADDRESS = "127.0.0.1"
FAST = {
    "SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0",
    "SPARKWRIGHT_SIMULATOR_MEMORY_GIB": "139.8",
    "SPARKWRIGHT_SIMULATOR_DEAD_S": "0.6",
    "SPARKWRIGHT_SIMULATOR_SHM_WARN_S": "0.3",
}
DEADLINE_S = PATIENCE


def wait_until(what: str | Callable[[], str], happened: object, within: float = DEADLINE_S) -> None:
    """Polls; the only waiting in these tests. Fails with what did not happen, as it is at the end."""
    assert callable(happened)
    end = time.monotonic() + within
    while not happened():
        assert time.monotonic() < end, f"not within {within} s: {what() if callable(what) else what}"
        time.sleep(0.01)


@dataclass
class SimulatorProcess:
    """One rank."""

    flags: list[str]
    log_path: Path
    env: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> SimulatorProcess:
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("SPARKWRIGHT_", "VLLM_", "NCCL_", "GLOO_"))}
        with self.log_path.open("wb") as log:
            module = "simulators" if self.flags[0] in PROGRAMS else "sparkwright.simulator"
            command = [sys.executable, "-m", module, *self.flags]
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env={**keep, "PYTHONPATH": TOOLS, **FAST, **self.env}
            )
        return self

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None
        return self.process

    @property
    def log(self) -> str:
        """Redrawn bars read as lines, as in the captures; without half a letter that is being written."""
        return codecs.getincrementaldecoder("utf-8")().decode(self.log_path.read_bytes()).replace("\r", "\n")

    def logs(self, words: str, within: float = DEADLINE_S) -> None:
        wait_until(lambda: f"{words!r} in\n{self.log[-3000:]}", lambda: words in self.log or self._ended(words), within)

    def _ended(self, words: str) -> bool:
        assert self.running.poll() is None or words in self.log, f"ended without {words!r}:\n{self.log[-3000:]}"
        return False

    def ready(self) -> SimulatorProcess:
        self.logs("Application startup complete.")
        return self

    def exit_code(self, within: float = DEADLINE_S) -> int:
        return self.running.wait(within)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.running.send_signal(number)

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://{HEAD_ADDRESS}:{self.port}{path}", timeout=PATIENCE)

    def complete(self, timeout: float = PATIENCE, **body: object) -> httpx.Response:
        """timeout: seconds without a byte of the answer; the connection may take longer."""
        asked, limit = {"prompt": "hello", "max_tokens": 4, **body}, httpx.Timeout(PATIENCE, read=timeout)
        return httpx.post(f"http://{HEAD_ADDRESS}:{self.port}/v1/completions", json=asked, timeout=limit)
