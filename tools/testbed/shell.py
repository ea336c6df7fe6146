"""Running programs, taking the lock, reporting what goes on."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

Say = Callable[[str], None]
_RUNNING: set["subprocess.Popen[Any]"] = set()  # programs that any thread waits for
_INTERRUPTED = threading.Event()  # until all threads have given up


class TestbedError(Exception):
    """The testbed cannot be built or has gone wrong; the message states what was tried and what came back."""

    __test__ = False


def narrator() -> Say:
    """Progress lines with the seconds since the first."""
    start = time.monotonic()

    def report(text: str) -> None:
        sys.stderr.write(
            f"testbed [{time.monotonic() - start:5.1f} s] {text}\n"
        )  # one write: threads report things too

    return report


def run(argv: Sequence[str], *, stdin: IO[bytes] | None = None, timeout: float = 900) -> str:
    """Runs to success and returns stdout; raises with the program's last lines."""
    pipes = {"stdin": stdin or subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = run_to_end(argv, timeout, **pipes)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode(errors="replace")[-2000:]
        raise TestbedError(f"{' '.join(argv)[:300]} ended with {done.returncode}:\n{words}")
    return done.stdout.decode(errors="replace")


def logged(argv: Sequence[str], log: Path, *, timeout: float = 1800, env: dict[str, str] | None = None) -> None:
    """Runs a long step with its output in a log file; env: added to this process's own."""
    environment = {**os.environ, **(env or {})}
    with log.open("ab") as file:
        file.write(f"\n$ {' '.join(argv)}\n".encode())
        file.flush()
        done = run_to_end(argv, timeout, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)
    if done.returncode != 0:
        tail = log.read_text(errors="replace")[-2500:]
        raise TestbedError(f"{argv[0]} ended with {done.returncode}; the end of {log}:\n{tail}")


def run_to_end(
    argv: Sequence[str], timeout: float, given: bytes | str | None = None, **more: Any
) -> "subprocess.CompletedProcess[Any]":
    """The result of `subprocess.run`, in any thread: an interrupt of the main thread ends the program, too."""
    if _INTERRUPTED.is_set():
        raise TestbedError(f"interrupted before {argv[0]}")
    with subprocess.Popen(list(argv), **more) as process:  # closes its pipes, also after the time is over
        _RUNNING.add(process)
        try:
            out, error = process.communicate(given, timeout)
        except BaseException:
            process.kill()
            raise
        finally:
            _RUNNING.discard(process)
    return subprocess.CompletedProcess(list(argv), process.returncode, out, error)


def together(work: Callable[[Any], object], items: Iterable[Any]) -> None:
    """The same work on every item at once; the first error is raised when all have ended.

    An interrupt ends the programs that they wait for: a build takes minutes, and a pool waits for its threads.
    """
    futures = list[Future[object]]()
    with ThreadPoolExecutor() as pool:
        try:  # an interrupt may come while work is handed out
            futures.extend(pool.submit(work, item) for item in items)
            for future in futures:
                future.result()
        except KeyboardInterrupt:
            _give_up(pool)
            raise


def _give_up(pool: ThreadPoolExecutor) -> None:
    """Ends what the threads of the pool wait for, until all of them have ended."""
    _INTERRUPTED.set()
    ended = threading.Event()
    killer = threading.Thread(target=_kill_until, args=(ended,), daemon=True)
    killer.start()
    pool.shutdown(cancel_futures=True)
    ended.set()
    killer.join()
    _INTERRUPTED.clear()


def _kill_until(ended: threading.Event) -> None:
    while not ended.wait(0.05):
        for process in tuple(_RUNNING):
            process.kill()


def wait_until(check: Callable[[], bool], what: str, timeout: float) -> None:
    end = time.monotonic() + timeout
    while not check():
        if _INTERRUPTED.is_set():
            raise TestbedError(f"interrupted while waiting for {what}")
        if time.monotonic() > end:
            raise TestbedError(f"waited {timeout:.0f} s in vain for {what}")
        time.sleep(0.05)


class Lock:
    """One process at a time; the file names the holder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    @property
    def locked(self) -> bool:
        return self._file is not None

    def take(self, report: Say) -> None:
        if self._file is not None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            report(f"waiting for the testbed: {file.read().strip() or 'another process'} uses it")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        print(f"{' '.join(sys.argv)[:200]}", file=file, flush=True)
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None
