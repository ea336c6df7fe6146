"""vLLM's log format: who speaks, with which pid, level, time, file and line.

vLLM runs an API server, an engine core and a worker as own processes; the simulator is one process per rank, so
all its voices carry the one real pid: a signal to a pid from the log reaches the simulator.
"""

from __future__ import annotations

import codecs
import contextlib
import logging
import socket
import sys
import time
import tomllib
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import TextIO, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.logging import AccessFormatter, DefaultFormatter

from sparkwright.domain.values import dataclass


@cache
def _lines() -> dict[str, tuple[str, str]]:
    found = tomllib.loads((files("sparkwright.simulator") / "texts/lines.toml").read_text(encoding="utf-8"))
    return {where: (level, text) for level, texts in found.items() for where, text in texts.items()}


@dataclass(frozen=True, slots=True)
class LineForm:
    """The beginning of another engine's lines: of its own logger (level, one letter or word), and of other
    libraries."""

    own: Callable[[str], str]
    other: Callable[[], str]


@dataclass(frozen=True, slots=True)
class LogVoice:
    """One process name of vLLM. `who` is empty for a headless node's main process."""

    who: str
    pid: int
    out: TextIO
    form: LineForm | None = None
    """Not vLLM's."""

    @property
    def prefix(self) -> str:
        return f"({self.who} pid={self.pid}) " if self.who else ""

    def write(self, level: str, where: str, message: str) -> None:
        stamp = time.strftime("%m-%d %H:%M:%S")
        head = self.form.own(level) if self.form else f"{self.prefix}{level} {stamp} [{where}] "
        self.raw("".join(f"{head}{line}\n" for line in message.split("\n")))

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
        self.raw("".join(f"{head}{line}\n" for line in message.split("\n")))

    def raw(self, text: str) -> None:
        """Bytes without prefix: C++ libraries and progress bars write past the Python streams."""
        self.out.write(text)
        self.out.flush()


@dataclass(frozen=True, slots=True)
class Voices:
    """The processes of one rank. On a single rank the engine core does the worker's work itself (capture a-tiny)."""

    api: LogVoice
    core: LogVoice
    worker: LogVoice
    ranked: LogVoice

    def native(self, where: str, message: str, rank: int | None = None, level: str = "W") -> None:
        """A line of PyTorch's C++ side, e.g. `[rank0]:[W1121 04:09:00.015087529 ProcessGroupNCCL.cpp:1575] ...`."""
        head = "" if rank is None else f"[rank{rank}]:"
        self.core.raw(f"{head}[{level}{native_time()} {where}] {message}\n")


def voices(pid: int, rank: int, world: int, headless: bool, odd: bool = False) -> Voices:
    out = cast(TextIO, OddLines(sys.stdout)) if odd else sys.stdout
    core = LogVoice("" if headless else "EngineCore", pid, out)
    worker = LogVoice("Worker", pid, out) if world > 1 else core
    ranked = LogVoice(f"Worker_TP{rank}", pid, out) if world > 1 else core
    return Voices(LogVoice("" if headless else "APIServer", pid, out), core, worker, ranked)


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


class OddLines:
    """Prints every line in letters that no reader of logs knows, but for the mark of the simulator."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(text if "SIMULATED" in text else codecs.encode(text, "rot13"))

    def flush(self) -> None:
        self._out.flush()


class Web(uvicorn.Server):
    """SIGTERM goes through vLLM's engine first, so uvicorn must not catch it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Spoken(logging.Handler):
    def __init__(self, voice: LogVoice, formatter: logging.Formatter, hidden: frozenset[str]) -> None:
        super().__init__()
        self.voice = voice
        self.hidden = hidden
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        # vLLM's line with the address stands for uvicorn's own; access lines of chosen paths can be hidden.
        if record.msg.startswith("Uvicorn running on") or self._is_hidden(record):
            return
        self.voice.bare(self.format(record))

    def _is_hidden(self, record: logging.LogRecord) -> bool:
        args = record.args
        return isinstance(args, tuple) and len(args) == 5 and str(args[2]).partition("?")[0] in self.hidden


def bind_port(host: str | None, port: int) -> socket.socket:
    """Binds before the engine starts, as vLLM does: a taken port ends the start at once. Raises OSError."""
    family = socket.AF_INET6 if ":" in (host or "") else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    # As uvloop does in vLLM: without it a stream's second chunk waits 40 ms for the client's acknowledgement.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        sock.bind((host or "", port))
    except OSError:
        sock.close()
        raise
    return sock


def web_server(app: ASGIApp, args: Namespace, voice: LogVoice) -> Web:
    hidden = frozenset(filter(None, (args.disable_access_log_for_endpoints or "").split(",")))
    plain = DefaultFormatter("%(levelprefix)s %(message)s", use_colors=False)
    access = AccessFormatter('%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s', use_colors=False)
    for name, formatter in (("uvicorn.error", plain), ("uvicorn.access", access)):
        logger = logging.getLogger(name)
        logger.handlers = [Spoken(voice, formatter, hidden)]
        logger.propagate = False
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level=args.uvicorn_log_level,
        access_log=not args.disable_uvicorn_access_log,
        lifespan="on",
        ws="none",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
    )
    return Web(config)
