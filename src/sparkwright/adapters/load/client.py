"""The load client: runs a job in worker processes of its own and hands the rows on as requests end."""

import asyncio
import math
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from sparkwright import __version__
from sparkwright.adapters import process
from sparkwright.adapters.load.wire import FAILED, LAG, ROW, FrameReader, pack_frame, share_of
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.run import Lag, LoadJob, Row, Turn

_PER_PROCESS = 512  # streams that one core reads without lag at the usual rates
_BUSY = 0.7  # of a core: a process that was busier shares the next job with another
_READ = 1 << 18
_SOON = 0.02  # from the word to begin until the beginning: the workers read it in this time
_PROGRAM = "from sparkwright.adapters.load.worker import main; main()"


class ProcessClient:
    """Implements ports.LoadClient. processes: at most so many; None takes what this machine has to spare.

    authority: a file with one more certificate to trust.
    """

    def __init__(self, processes: int | None = None, authority: str = "") -> None:
        self._authority = authority
        self._most = processes or max(1, len(os.sched_getaffinity(0)) - 1)
        self._streams = _PER_PROCESS

    async def run(self, job: LoadJob, key: Secret | None) -> AsyncIterator[Row | Lag]:
        if not job.sessions:
            yield Lag(processes=0)
            return
        parts = max(1, min(self._most, math.ceil(_streams(job) / self._streams)))
        async with AsyncExitStack() as stack:
            workers = [await stack.enter_async_context(_worker()) for _ in range(parts)]
            jobs = [pack_frame({**_wire(job, key, part, parts), "authority": self._authority}) for part in range(parts)]
            feeding = [asyncio.ensure_future(process.feed_stdin(*pair)) for pair in zip(workers, jobs, strict=True)]
            stack.callback(lambda: [task.cancel() for task in feeding])
            rows = await stack.enter_async_context(aclosing(_together(job, workers)))
            async for heard in rows:
                if isinstance(heard, Lag) and heard.cores > _BUSY:
                    self._streams = math.ceil(_streams(job) / (parts + 1))
                yield heard


def _streams(job: LoadJob) -> int:
    """The largest number of streams at a time."""
    return min(job.pace.concurrency or len(job.sessions), len(job.sessions))


@asynccontextmanager
async def _worker() -> AsyncIterator[Process]:
    # -P: nothing of the folder it is called in. Its memory is its own, so it is free to be killed at any time.
    # Its environment is ours, so that SSL_CERT_FILE counts, and it finds the same sparkwright.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    started = await process.start((sys.executable, "-S", "-P", "-c", _PROGRAM), env=environment)
    try:
        yield started
    finally:
        await process.end_process(started, 0.0)


async def _together(job: LoadJob, workers: list[Process]) -> AsyncGenerator[Row | Lag, None]:
    """All rows as they come; when every worker is ready, the word to begin; at the end one lag for all."""
    heard: asyncio.Queue[list[Any]] = asyncio.Queue(maxsize=16)
    readers = [asyncio.create_task(_listen(worker, heard)) for worker in workers]
    lags: list[Lag] = []
    ready = 0
    try:
        while len(lags) < len(workers):
            for what, *values in await heard.get():
                if what == ROW:
                    yield _row(job, values)
                elif what == LAG:
                    lags.append(Lag(*values))
                elif what == FAILED:
                    raise _lost(*values)
                else:
                    ready += 1
                    zero = pack_frame(perf_counter() + _SOON)
                    for worker in workers if ready == len(workers) else ():
                        assert worker.stdin
                        worker.stdin.write(zero)
    finally:
        for reader in readers:
            reader.cancel()
    yield Lag(  # the worst figures of all processes; CPU is their sum
        max(lag.p50 for lag in lags),
        max(lag.p99 for lag in lags),
        max(lag.most for lag in lags),
        sum(lag.cpu for lag in lags),
        max(lag.cores for lag in lags),
        len(lags),
    )


async def _listen(worker: Process, heard: "asyncio.Queue[list[Any]]") -> None:
    frames, lag = FrameReader(), False
    assert worker.stdout
    while data := await worker.stdout.read(_READ):
        values = list(frames.feed(data))
        lag = lag or any(value[0] == LAG for value in values)
        await heard.put(values)
    if not lag:
        words = await process.complaint(worker)
        await heard.put([(FAILED, await worker.wait(), words.strip()[-2000:])])


def _lost(code: int, words: str) -> Exception:
    """A worker that ended before its job did: killed from outside, or by a mistake of ours."""
    if code >= 0:
        return RuntimeError(f"a load worker ended before its job did: {words}")
    hint = "is this machine short of memory? What was measured is saved: sparkwright bench --resume last continues it"
    return NotReady(f"the process that sends the requests was killed by signal {-code}", hint)


def _row(job: LoadJob, values: list[Any]) -> Row:
    place, number, reported, text = values
    session = job.sessions[place]
    turn = session.turns[number]
    return Row.from_wire(
        session.number,
        number,
        reported,
        counted=session.counted,
        warmup=turn.warmup,
        planned_prompt=turn.prompt_tokens,
        planned_output=turn.output_tokens,
        planned_cached=turn.cached_tokens,
        text=text,
    )


def _wire(job: LoadJob, key: Secret | None, part: int, parts: int) -> dict[str, Any]:
    """One worker's share of the job, as plain values. The key goes through the pipe, never through argv."""
    url = urlsplit(job.url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UsageError(f"{job.url}: no http:// or https:// URL", "name the server as http://host:port/v1")
    sessions = share_of(tuple(enumerate(job.sessions)), part, parts)
    return {
        "host": url.hostname,
        "port": url.port or (443 if url.scheme == "https" else 80),
        "tls": url.scheme == "https",
        "head": _head(url.netloc.rpartition("@")[2], url.path + (f"?{url.query}" if url.query else ""), key),
        "concurrency": len(range(part, job.pace.concurrency, parts)),  # 0 stays 0: no limit
        "limits": (job.connect, job.first_byte, job.silence),
        "whole": job.whole,
        "keep_text": job.keep_text,
        "sessions": [(place, session.at, list(map(_turn, session.turns))) for place, session in sessions],
    }


def _turn(turn: Turn) -> tuple[bytes, bytes, bytes, bool, float]:
    return turn.head.encode(), turn.new.encode(), turn.tail.encode(), turn.answer, turn.think


def _head(host: str, path: str, key: Secret | None) -> bytes:
    """All of the request's head but the length of its body. No encoding is offered, so none has to be undone."""
    lines = [
        f"POST {path or '/'} HTTP/1.1",
        f"Host: {host}",
        f"User-Agent: sparkwright/{__version__}",
        "Accept: text/event-stream, application/json",
        "Content-Type: application/json",
        *([f"Authorization: Bearer {key.reveal()}"] if key else []),
        "Content-Length: ",
    ]
    return "\r\n".join(lines).encode("latin-1")
