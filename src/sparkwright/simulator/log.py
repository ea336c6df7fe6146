"""vLLM's log format: who speaks, with which pid, level, time, file and line.

vLLM runs an API server, an engine core and a worker as own processes; the simulator is one process per rank, so
all its voices carry the one real pid: a signal to a pid from the log reaches the simulator.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TextIO


@cache
def _lines() -> dict[str, tuple[str, str]]:
    found = tomllib.loads((files("sparkwright.simulator") / "texts/lines.toml").read_text(encoding="utf-8"))
    return {where: (level, text) for level, texts in found.items() for where, text in texts.items()}


@dataclass(frozen=True, slots=True)
class Form:
    """How another engine begins a line: of its own logger (level, one letter or word), and of other libraries."""

    own: Callable[[str], str]
    other: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Voice:
    """One process name of vLLM. `who` is empty for a headless node's main process."""

    who: str
    pid: int
    out: TextIO
    form: Form | None = None
    """Not vLLM's."""

    @property
    def prefix(self) -> str:
        return f"({self.who} pid={self.pid}) " if self.who else ""

    def write(self, level: str, where: str, message: str) -> None:
        stamp = time.strftime("%m-%d %H:%M:%S")
        head = self.form.own(level) if self.form else f"{self.prefix}{level} {stamp} [{where}] "
        self._write("".join(f"{head}{line}\n" for line in message.split("\n")))

    def line(self, where: str, /, **values: object) -> None:
        """The line of that place in vLLM's source."""
        level, text = _lines()[where]
        self.write(level, where, text.format(**values))

    def info(self, where: str, message: str) -> None:
        self.write("INFO", where, message)

    def warning(self, where: str, message: str) -> None:
        self.write("WARNING", where, message)

    def error(self, where: str, message: str) -> None:
        self.write("ERROR", where, message)

    def bare(self, message: str) -> None:
        """A line without level and time, as from another library or a traceback."""
        head = self.form.other() if self.form else self.prefix
        self._write("".join(f"{head}{line}\n" for line in message.split("\n")))

    def raw(self, text: str) -> None:
        """Bytes without prefix: C++ libraries and progress bars write past the Python streams."""
        self._write(text)

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


@dataclass(frozen=True, slots=True)
class Voices:
    """The processes of one rank. On a single rank the engine core does the worker's work itself (capture a-tiny)."""

    api: Voice
    core: Voice
    worker: Voice
    ranked: Voice

    def native(self, where: str, message: str, rank: int | None = None, level: str = "W") -> None:
        """A line of PyTorch's C++ side, e.g. `[rank0]:[W1121 04:09:00.015087529 ProcessGroupNCCL.cpp:1575] ...`."""
        head = "" if rank is None else f"[rank{rank}]:"
        self.core.raw(f"{head}[{level}{native_time()} {where}] {message}\n")


def voices(pid: int, rank: int, world: int, headless: bool) -> Voices:
    out = sys.stdout
    core = Voice("" if headless else "EngineCore", pid, out)
    worker = Voice("Worker", pid, out) if world > 1 else core
    ranked = Voice(f"Worker_TP{rank}", pid, out) if world > 1 else core
    return Voices(Voice("" if headless else "APIServer", pid, out), core, worker, ranked)


def native_time() -> str:
    now = time.time()
    return time.strftime("%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e9):09d}"


def recorded(name: str, said: Voices, values: dict[str, str]) -> None:
    """Prints lines that the real vLLM printed, from texts/, with this run's names, pids and times."""
    text = (files(__package__ or "sparkwright.simulator") / "texts" / f"{name}.txt").read_text(encoding="utf-8")
    stamps = {
        "T": time.strftime("%m-%d %H:%M:%S"),
        "D": native_time(),
        "L": time.strftime("%Y-%m-%d %H:%M:%S"),
        "A": said.api.prefix.rstrip(),
        "E": (said.core.prefix or said.ranked.prefix).rstrip(),
        "W": said.ranked.prefix.rstrip(),
        "PID": str(said.api.pid),
    }
    text = text.replace("@A@ ", said.api.prefix)
    for key, value in {**values, **stamps}.items():
        text = text.replace(f"@{key}@", value)
    said.api.raw(text)
