"""Usage that is written by a thread: nothing that a limit counts is late, and the end of the process loses nothing."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sparkwright.adapters.sqlite.usage import FILE, UsageStore, used_since
from sparkwright.gateway.usage import Tokens
from sparkwright.supervisor.proxy import usage_writer
from sparkwright.supervisor.proxy.usage_writer import UsageWriter

ROW = ("2026-11-24", "ci", "tiny")


def answer_requests(writer: UsageWriter, number: int) -> None:
    for _ in range(number):
        writer.begin(ROW)
        writer.end(ROW, "finished", Tokens(6, 4))


def written(folder: Path) -> list[tuple[int, int]]:
    return [(one.finished, one.open) for one in used_since(folder, ROW[0])]


def keep_the_thread_from_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread writes after a twentieth of a second, in which a busy machine may not have let the test look."""
    monkeypatch.setattr(UsageWriter, "_write_soon", lambda self: None)


def test_a_limit_counts_what_is_not_written_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards limits of tokens: a key's next request may come before the thread has written."""
    keep_the_thread_from_writing(monkeypatch)
    writer = UsageWriter(UsageStore(tmp_path))
    answer_requests(writer, 3)
    assert written(tmp_path) == [] and writer.today(*ROW[:2]) == 30
    assert written(tmp_path) == [(3, 0)]


async def test_rows_are_written_soon_and_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the figures of keys while requests go on and other threads read."""
    monkeypatch.setattr(usage_writer, "GATHERED", 0.01)
    writer = UsageWriter(UsageStore(tmp_path))
    async with asyncio.timeout(60):
        for number in range(1, 6):
            answer_requests(writer, 2)
            while written(tmp_path) != [(2 * number, 0)]:
                await asyncio.sleep(0.002)


def test_the_end_of_the_process_loses_nothing(tmp_path: Path) -> None:
    """Guards what waits at SIGTERM, and the requests that are cut after it."""
    writer = UsageWriter(UsageStore(tmp_path))
    answer_requests(writer, 1)
    writer.begin(ROW)
    writer.end_gathering()
    assert written(tmp_path) == [(1, 1)]
    writer.end(ROW, "cut", None)
    assert written(tmp_path) == [(1, 0)]


def test_a_disk_that_takes_nothing_holds_no_request_and_no_end_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the gateway from a lock or a slow disk: rows beyond a bound are dropped, and it says so until they fit."""
    keep_the_thread_from_writing(monkeypatch)
    monkeypatch.setattr(usage_writer, "_MOST", 4)
    writer = UsageWriter(UsageStore(tmp_path))
    answer_requests(writer, 3)
    assert len(writer._waiting) == 4 and "not counted in full" in writer.trouble
    assert writer.today(*ROW[:2]) == 20
    answer_requests(writer, 1)
    assert writer.trouble == ""


def test_a_database_that_is_locked_costs_counts_only(tmp_path: Path) -> None:
    """Guards requests while another program writes: the transaction is given up whole, and its trouble is told."""
    writer = UsageWriter(UsageStore(tmp_path))
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer_requests(writer, 1)
        assert writer.today(*ROW[:2]) == 0 and "locked" in writer.trouble
    assert written(tmp_path) == []
