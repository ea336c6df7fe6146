"""`pytest --workers N`: the tests are collected once, then N forks of this process share the files.

pytest-xdist starts each worker from nothing: it imports and collects all again (docs/adr/0018-test-runner.md). With
`--apart` each fork has namespaces of its own (namespaces.py). TEST_WORKER is the fork's number: each has a testbed of
its own. TEST_PROGRESS names a file that holds how far the run is, for scripts/testing/test_all.py. After TEST_UNTIL
(seconds since 1970) no file begins: its tests are skipped, and the reason says so.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pytest

import namespaces

Chunks = list[list[pytest.Item]]
ENDING = 12.0  # seconds for fixtures to clean up
GRACE = 5.0  # seconds for processes that a worker's tests started to end
OVER = "time: not reached before the run's time was over"
TYPICAL = 1.0  # seconds of a test that no run has measured
DURATIONS = Path("build/tests/durations.json")  # seconds per test file, written by scripts/testing/test_all.py


@dataclass(frozen=True, slots=True)
class Worker:
    """rest: of a report that has come in part."""

    pid: int
    rest: bytearray = field(default_factory=bytearray)


@dataclass(slots=True, eq=False)  # pytest wants plugins that have a hash
class WorkerProgress:
    """Number of tests that ended or failed, and the file that each worker runs. What failed stands at once in the file
    beside `path` whose name ends in .failed."""

    path: str
    total: int = 0
    done: int = 0
    failed: int = 0
    files: dict[int, str] = field(default_factory=dict)
    shared: bool = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.total = len(session.items)
        self.write()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begins a file without workers; those report themselves which file they begin."""
        if not self.shared:
            self.begin(0, nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self.done += 1
        self.write()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed += 1
            with contextlib.suppress(OSError), Path(self.path).with_suffix(".failed").open("a") as file:
                file.write(f"== {report.nodeid} ({report.when})\n{report.longreprtext}\n\n")

    def begin(self, place: int, nodeid: str) -> None:
        self.files[place] = nodeid.partition("::")[0]
        self.write()

    def write(self) -> None:
        with contextlib.suppress(OSError):
            Path(self.path).write_text(
                json.dumps([self.done, self.total, sorted(set(self.files.values())), self.failed])
            )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="processes that share the test files")
    parser.addoption("--apart", action="store_true", help="each worker has namespaces of its own")


def pytest_configure(config: pytest.Config) -> None:
    """SIGTERM ends a run as SIGINT does: fixtures clean up."""
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started all in the background
    if path := os.environ.pop("TEST_PROGRESS", ""):
        config.pluginmanager.register(WorkerProgress(path), "progress")


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    options = session.config.option
    number = options.workers
    if (number < 2 and not options.apart) or session.testsfailed or options.collectonly:
        return None
    chunks = [list(items) for _, items in itertools.groupby(session.items, key=lambda item: item.path)]
    longest_first(chunks, session.config.rootpath)
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    share_files(session, chunks, min(number, max(len(chunks), 1)))
    return True


def longest_first(chunks: Chunks, root: Path) -> None:
    """Sorts long files first, so that no worker has one left when the others have ended. A file that no run has
    measured counts by its number of tests."""
    try:
        seconds = json.loads((root / DURATIONS).read_text())
    except (OSError, ValueError):
        seconds = {}
    chunks.sort(key=lambda items: -float(seconds.get(items[0].nodeid.partition("::")[0], len(items) * TYPICAL)))


def share_files(session: pytest.Session, chunks: Chunks, number: int) -> None:
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
    """End fixtures as after Ctrl-C; kill what has not ended after `ENDING`."""
    for pid in pids:
        os.kill(pid, signal.SIGINT)
    last = time.monotonic() + ENDING
    while pids := [pid for pid in pids if os.waitpid(pid, os.WNOHANG) == (0, 0)]:
        time.sleep(0.02)
        if time.monotonic() > last:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)


def start(session: pytest.Session, chunks: Chunks, todo: int, place: int) -> tuple[int, Worker]:
    """The fork has a process group of its own: Ctrl-C reaches it once, by way of the parent."""
    end, reports = os.pipe()
    parent = os.getpid()
    if pid := os.fork():
        os.close(reports)
        return end, Worker(pid)
    code = 1
    try:
        os.setpgid(0, 0)
        namespaces.end_with_parent()
        if os.getppid() != parent:
            os._exit(code)
        os.environ["TEST_WORKER"] = str(place)
        if session.config.option.apart:
            namespaces.enter_namespaces()
        work_in_fork(session, chunks, todo, os.fdopen(reports, "wb"))
        code = 0
    except BaseException as error:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if not isinstance(error, KeyboardInterrupt):
            traceback.print_exc()
        with contextlib.suppress(BaseException):
            session._setupstate.teardown_exact(None)
    os._exit(code)


def work_in_fork(session: pytest.Session, chunks: Chunks, todo: int, reports: BinaryIO) -> None:
    """Works in the fork: reports go to the parent; its own capture, since the parent's file is that of all."""
    config = session.config
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.unregister(name="progress")
    config.pluginmanager.register(sender := ReportSender(config, reports))
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    started_in: dict[int, str] = {}
    until = float(os.environ.pop("TEST_UNTIL", "inf"))
    while number := os.read(todo, 2):
        items = chunks[int.from_bytes(number, "big")]
        if time.time() > until:
            for item in items:
                item.add_marker(pytest.mark.skip(reason=OVER))
        file = items[0].nodeid.partition("::")[0]
        sender.send({"begin": file, "worker": int(os.environ["TEST_WORKER"])})
        reports.flush()
        for item, following in zip(items, [*items[1:], Other(session)], strict=True):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if config.option.apart:
            started_in = {pid: started_in.get(pid, file) for pid in namespaces.neighbours()}
    session._setupstate.teardown_exact(None)
    if config.option.apart and (left := left_behind()):
        sender.send({"left": [f"{words} (since {started_in.get(pid, 'the end')})" for pid, words in left.items()]})
    reports.close()


def left_behind() -> dict[int, str]:
    """Processes of this worker's namespace that outlive its tests and fixtures."""
    end = time.monotonic() + GRACE
    while (alive := namespaces.neighbours()) and time.monotonic() < end:
        time.sleep(0.05)
    return alive


@dataclass(frozen=True, slots=True)
class Other:
    """Some test of another file, in place of the one that is not known yet: only the session's fixtures go on."""

    session: pytest.Session

    def listchain(self) -> list[pytest.Session]:
        return [self.session]


@dataclass(frozen=True, slots=True)
class ReportSender:
    config: pytest.Config
    reports: BinaryIO

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.send(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))
        if report.when == "teardown":
            self.reports.flush()

    def send(self, data: dict[str, object]) -> None:
        self.reports.write(json.dumps(data).encode() + b"\n")


def receive(session: pytest.Session, workers: dict[int, Worker], end: int) -> None:
    """Raises what ends a run: too many failures, or a worker that was killed."""
    worker = workers[end]
    if data := os.read(end, 1 << 20):
        *lines, last = bytes(worker.rest + data).split(b"\n")
        worker.rest[:] = last
        for line in lines:
            take_report(session.config, json.loads(line))
    else:
        os.close(end)
        del workers[end]
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if status:
            raise RuntimeError(f"a worker ended with status {status}")
    if session.shouldfail:
        raise session.Failed(session.shouldfail)


def take_report(config: pytest.Config, data: dict[str, object]) -> None:
    if "begin" in data:
        if progress := config.pluginmanager.getplugin("progress"):
            progress.shared = True
            progress.begin(data["worker"], data["begin"])
    elif "left" in data:
        log_left(config, data["left"])
    else:
        log_report(config, data)


def log_left(config: pytest.Config, left: list[str]) -> None:
    """A failed test of its own, in the terminal and in the report as JUnit XML."""
    place = ("workers", None, "left_behind")
    for when, outcome, text in (("call", "failed", "\n".join(left)), ("teardown", "passed", None)):
        report = pytest.TestReport("workers::left_behind", place, {}, outcome, text, when)
        config.hook.pytest_runtest_logreport(report=report)
    print("left behind: " + "; ".join(left), file=sys.stderr)


def log_report(config: pytest.Config, data: dict[str, object]) -> None:
    if data["outcome"] == "skipped" and isinstance(data["longrepr"], list):
        data["longrepr"] = tuple(data["longrepr"])  # JSON has no tuples, and the report as JUnit XML wants one
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    place = {"nodeid": report.nodeid, "location": report.location}
    if report.when == "setup":
        config.hook.pytest_runtest_logstart(**place)
    config.hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        config.hook.pytest_runtest_logfinish(**place)
