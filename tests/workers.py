"""`pytest --workers N`: the tests are collected once, then N forks of this process share the files.

pytest-xdist starts each worker from nothing: it imports and collects all again, which takes a third of the time that
tests as short as the unit tests need. With `--apart` each fork has a network and leases of its own, so that functional
tests that wait share the CPUs with others. TEST_WORKER is the fork's number: each has a testbed of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import select
import signal
import subprocess
import time
import traceback
from dataclasses import dataclass, field
from typing import BinaryIO

import pytest

Chunks = list[list[pytest.Item]]
NEW_MOUNTS, NEW_NETWORK = 0x20000, 0x40000000  # linux/sched.h
OWN = "mount --make-rprivate / && ip link set lo up && mkdir -p /run/lock && mount -t tmpfs none /run/lock"
ENDING = 60.0  # seconds for fixtures to clean up
# Files that take longest begin first, so that no worker has one left when the others have ended.
LONG = ("install_supervisor", "supervise", "build", "ray_launch", "soak", "demo", "console", "several", "on_demand")
LONG += ("supervised", "engines_up", "init", "stage_weights", "replace", "truth", "testbed")


@dataclass(frozen=True, slots=True)
class Worker:
    """rest: of a report that has come in part."""

    pid: int
    rest: bytearray = field(default_factory=bytearray)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="processes that share the test files")
    parser.addoption("--apart", action="store_true", help="each worker has a network and leases of its own (root)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    number = session.config.option.workers
    if number < 2 or session.testsfailed or session.config.option.collectonly:
        return None
    chunks = [list(items) for _, items in itertools.groupby(session.items, key=lambda item: item.path)]
    chunks.sort(key=lambda items: items[0].path.stem.removeprefix("test_") not in LONG)
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    share(session, chunks, number)
    return True


def share(session: pytest.Session, chunks: Chunks, number: int) -> None:
    todo, numbers = os.pipe()
    os.write(numbers, b"".join(one.to_bytes(2, "big") for one in range(len(chunks))))
    os.close(numbers)
    workers: dict[int, Worker] = {}
    try:
        for place in range(number):
            end, worker = start(session, chunks, todo, place)
            workers[end] = worker
        while workers:
            for end in select.select(list(workers), [], [])[0]:
                receive(session, workers, end)
    finally:
        os.close(todo)
        stop([worker.pid for worker in workers.values()])
        for end in workers:
            os.close(end)


def stop(pids: list[int]) -> None:
    """Fixtures end as after Ctrl-C; what has not ended a minute later is killed."""
    for pid in pids:
        os.kill(pid, signal.SIGINT)
    last = time.monotonic() + ENDING
    while pids := [pid for pid in pids if os.waitpid(pid, os.WNOHANG) == (0, 0)]:
        time.sleep(0.02)
        if time.monotonic() > last:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)


def start(session: pytest.Session, chunks: Chunks, todo: int, place: int) -> tuple[int, Worker]:
    end, reports = os.pipe()
    if pid := os.fork():
        os.close(reports)
        return end, Worker(pid)
    code = 1
    try:
        os.environ["TEST_WORKER"] = str(place)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started all in the background
        if session.config.option.apart:
            isolate()
        work(session, chunks, todo, os.fdopen(reports, "wb"))
        code = 0
    except BaseException as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not isinstance(error, KeyboardInterrupt):
            traceback.print_exc()
        with contextlib.suppress(BaseException):
            session._setupstate.teardown_exact(None)
    os._exit(code)


def isolate() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_MOUNTS | NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["sh", "-c", OWN], check=True)


def work(session: pytest.Session, chunks: Chunks, todo: int, reports: BinaryIO) -> None:
    """In the fork: reports go to the parent; its own capture, since the parent's file is that of all."""
    config = session.config
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Sender(config, reports))
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    while number := os.read(todo, 2):
        items = chunks[int.from_bytes(number, "big")]
        for item, following in zip(items, [*items[1:], Other(session)], strict=True):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    reports.close()
    session._setupstate.teardown_exact(None)


@dataclass(frozen=True, slots=True)
class Other:
    """Some test of another file, in place of the one that is not known yet: only the session's fixtures go on."""

    session: pytest.Session

    def listchain(self) -> list[pytest.Session]:
        return [self.session]


@dataclass(frozen=True, slots=True)
class Sender:
    config: pytest.Config
    reports: BinaryIO

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.reports.write(json.dumps(data).encode() + b"\n")
        if report.when == "teardown":
            self.reports.flush()


def receive(session: pytest.Session, workers: dict[int, Worker], end: int) -> None:
    """Raises what ends a run: too many failures, or a worker that was killed."""
    worker = workers[end]
    if data := os.read(end, 1 << 20):
        *lines, last = bytes(worker.rest + data).split(b"\n")
        worker.rest[:] = last
        for line in lines:
            log(session.config, json.loads(line))
    else:
        os.close(end)
        del workers[end]
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if status:
            raise RuntimeError(f"a worker ended with status {status}")
    if session.shouldfail:
        raise session.Failed(session.shouldfail)


def log(config: pytest.Config, data: dict[str, object]) -> None:
    if data["outcome"] == "skipped" and isinstance(data["longrepr"], list):
        data["longrepr"] = tuple(data["longrepr"])  # JSON has no tuples, and the report as JUnit XML wants one
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    place = {"nodeid": report.nodeid, "location": report.location}
    if report.when == "setup":
        config.hook.pytest_runtest_logstart(**place)
    config.hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        config.hook.pytest_runtest_logfinish(**place)
