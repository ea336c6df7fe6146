"""uvicorn as vLLM runs it: on a socket bound early, with its lines in the API server's voice, signals left to us."""

from __future__ import annotations

import contextlib
import logging
import socket
from argparse import Namespace
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.logging import AccessFormatter, DefaultFormatter

from sparkwright.simulator.log import Voice


class Web(uvicorn.Server):
    """SIGTERM goes through vLLM's engine first, so uvicorn must not catch it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Spoken(logging.Handler):
    def __init__(self, voice: Voice, formatter: logging.Formatter, hidden: frozenset[str]) -> None:
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


def bind(host: str | None, port: int) -> socket.socket:
    """Before the engine starts, as vLLM does: a taken port ends the start at once. Raises OSError."""
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


def web(app: ASGIApp, args: Namespace, voice: Voice) -> Web:
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
