"""Running programs, taking the lock, reporting what goes on."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

Say = Callable[[str], None]


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
    done = subprocess.run(
        list(argv), stdin=stdin or subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
    )
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
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            timeout=timeout,
            check=False,
            env=environment,
        )
    if done.returncode != 0:
        tail = log.read_text(errors="replace")[-2500:]
        raise TestbedError(f"{argv[0]} ended with {done.returncode}; the end of {log}:\n{tail}")


def together(work: Callable[[Any], object], items: Iterable[Any]) -> None:
    """The same work on every item at once; the first error is raised when all have ended."""
    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(work, item) for item in items]:
            future.result()


def wait_until(check: Callable[[], bool], what: str, timeout: float) -> None:
    end = time.monotonic() + timeout
    while not check():
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
