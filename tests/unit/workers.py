"""`pytest --workers N`: the tests are collected once, then N forks of this process share the files.

pytest-xdist starts each worker from nothing: it imports and collects all again, which takes a third of the time that
tests as short as these need.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NoReturn

import pytest

Chunks = list[list[pytest.Item]]


@dataclass(frozen=True, slots=True)
class Worker:
    """rest: of a report that has come in part."""

    pid: int
    rest: bytearray = field(default_factory=bytearray)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="processes that share the test files")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    number = session.config.option.workers
    if number < 2 or session.testsfailed or session.config.option.collectonly:
        return None
    chunks = [list(items) for _, items in itertools.groupby(session.items, key=lambda item: item.path)]
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    share(session, chunks, number)
    return True


def share(session: pytest.Session, chunks: Chunks, number: int) -> None:
    todo, numbers = os.pipe()
    os.write(numbers, b"".join(one.to_bytes(2, "big") for one in range(len(chunks))))
    os.close(numbers)
    workers: dict[int, Worker] = {}
    try:
        for _ in range(number):
            end, worker = start(session.config, chunks, todo)
            workers[end] = worker
        while workers:
            for end in select.select(list(workers), [], [])[0]:
                receive(session, workers, end)
    finally:
        os.close(todo)
        for end, worker in workers.items():
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)
            os.close(end)


def start(config: pytest.Config, chunks: Chunks, todo: int) -> tuple[int, Worker]:
    end, reports = os.pipe()
    if pid := os.fork():
        os.close(reports)
        return end, Worker(pid)
    with contextlib.suppress(BaseException):
        work(config, chunks, todo, os.fdopen(reports, "wb"))
    os._exit(1)


def work(config: pytest.Config, chunks: Chunks, todo: int, reports: BinaryIO) -> NoReturn:
    """In the fork: reports go to the parent; its own capture, since the parent's file is that of all."""
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Sender(config, reports))
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    waiting = taken(chunks, todo)
    item = next(waiting, None)
    while item is not None:
        following = next(waiting, None)
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following
    reports.close()
    os._exit(0)


def taken(chunks: Chunks, todo: int) -> Iterator[pytest.Item]:
    """The tests of one file after the other: the next that no other worker has taken."""
    while number := os.read(todo, 2):
        yield from chunks[int.from_bytes(number, "big")]


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
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    place = {"nodeid": report.nodeid, "location": report.location}
    if report.when == "setup":
        config.hook.pytest_runtest_logstart(**place)
    config.hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        config.hook.pytest_runtest_logfinish(**place)
