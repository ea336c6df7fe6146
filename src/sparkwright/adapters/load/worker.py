"""The program that sends the requests of one job: a process of its own, so that nothing else runs in its loop.

It reads the job and then the word to begin from stdin, and writes `ready`, rows and its own lag to stdout. It ends
when its stdin does. Few imports: it has to be there at once.
"""

import contextlib
import fcntl
import gc
import os
import resource
import ssl
from functools import partial
from time import perf_counter, process_time
from typing import Any

from sparkwright.adapters.load.loop import WorkerLoop
from sparkwright.adapters.load.player import Player
from sparkwright.adapters.load.pool import Connection, SocketPool, resolve
from sparkwright.adapters.load.wire import LAG, READY, ROW, FrameReader, frame, read_frame

_SWEEP = 0.2
_FULL = 1 << 16
_PIPE = 1 << 20
_SPARE = 64  # connections opened beforehand for requests that have a time, without a limit


class Out:
    """Rows on their way to the client. Never waits for it while the job runs."""

    def __init__(self, fd: int) -> None:
        self._fd, self._held = fd, bytearray()
        os.set_blocking(fd, False)

    def put(self, value: Any) -> None:
        self._held += frame(value)

    def flush(self) -> None:
        try:
            while self._held:
                del self._held[: os.write(self._fd, self._held)]
        except BlockingIOError:
            pass

    def close(self) -> None:
        os.set_blocking(self._fd, True)
        self.flush()


class LoadWorker:
    """One job, from the wire to its lag."""

    def __init__(self, job: dict[str, Any], out: Out) -> None:
        self._job, self._out, self._loop = job, out, WorkerLoop()
        self._pool = self._connections()
        self._player = Player(self._loop, self._pool, self._request)
        self._player.keep_text, self._player.limit = job["keep_text"], job["concurrency"]
        self._player.emit = lambda row: out.put((ROW, *row))
        self._player.done = self._loop.stop
        self._began = self._cpu = 0.0
        self._heard = FrameReader()

    def run(self) -> None:
        sessions = self._job.pop("sessions")
        wanted = min(len(sessions), self._job["concurrency"] or (len(sessions) if sessions[0][1] is None else _SPARE))
        self._player.load(sessions)
        gc.freeze()
        self._loop.aio.add_reader(0, self._told)
        self._pool.prepare(wanted, self._ready)
        self._loop.at(perf_counter() + _SWEEP, self._sweep)
        self._loop.run()
        self._out.put((LAG, *self._lag()))
        self._out.close()

    def _connections(self) -> SocketPool:
        host, unknown, addresses = self._job["host"], "", []
        tls = (_context(self._job["authority"]), host) if self._job["tls"] else None
        try:
            addresses = resolve(host, self._job["port"])
        except OSError as error:
            unknown = f"{host}: {error.strerror}"
        return SocketPool(lambda pool, address: Connection(self._loop, pool, address, tls), addresses, unknown)

    def _request(self, length: int, parts: tuple[bytes, ...]) -> bytes:
        return b"".join((self._job["head"], b"%d\r\n\r\n" % length, *parts))

    def _ready(self) -> None:
        self._out.put((READY,))
        self._out.flush()

    def _told(self) -> None:
        """Reads the time to begin, or the end of stdin: the reader of the rows is gone."""
        data = os.read(0, _FULL)
        if not data:
            os._exit(1)
        for zero in self._heard.feed(data):
            self._loop.at(zero, partial(self._begin, zero))

    def _begin(self, zero: float) -> None:
        self._began, self._cpu = perf_counter(), process_time()
        self._loop.beat()
        self._loop.at(zero + self._job["whole"], self._time_up)
        self._player.begin(zero)

    def _time_up(self) -> None:
        self._player.finish("time-up", f"still in flight after {self._job['whole']:g} s, when the level had to end")

    def _sweep(self) -> None:
        now = perf_counter()
        self._pool.sweep(now, self._job["limits"])
        self._out.flush()
        self._loop.at(now + _SWEEP, self._sweep)

    def _lag(self) -> tuple[float, ...]:
        cpu, took = process_time() - self._cpu, max(perf_counter() - self._began, 1e-9)
        delays = sorted(self._loop.delays) or [0.0]
        middle, high = (delays[min(len(delays) - 1, int(share * len(delays)))] for share in (0.5, 0.99))
        return middle, high, delays[-1], cpu, cpu / took


def main() -> None:
    gc.disable()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.suppress(OSError):
        fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, _PIPE)
    job = read_frame(_read_whole)
    if job is not None:
        LoadWorker(job, Out(1)).run()


def _context(authority: str) -> ssl.SSLContext:
    """The system's authorities (SSL_CERT_FILE counts), and that of a file."""
    made = ssl.create_default_context()
    if authority:
        made.load_verify_locations(authority)
    made.set_alpn_protocols(["http/1.1"])
    return made


def _read_whole(size: int) -> bytes:
    """Reads exactly `size` bytes of stdin: the rest is for the loop."""
    parts = []
    while size and (part := os.read(0, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
