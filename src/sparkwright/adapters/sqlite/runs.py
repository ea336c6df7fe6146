"""The run store: every request of every benchmark, stored as it comes; other processes may write to it, too."""

import fcntl
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from sparkwright.adapters.sqlite import database, threaded
from sparkwright.adapters.sqlite import run_records as records
from sparkwright.domain.codec import Unreadable, to_json
from sparkwright.domain.errors import Busy, StoreError, UsageError
from sparkwright.domain.evaluation import Evaluation
from sparkwright.domain.run import Level, Row, Run, RunListing
from sparkwright.domain.workload import Workload

RUNS = "runs.sqlite"


class Holds:
    """A byte of one file for each run, locked by the process that measures it.

    One object a process: the first one that closes the file gives up the locks of all. Methods raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self._mine: set[str] = set()

    def take(self, run: str) -> None:
        """Takes the run until it is freed. Raises Busy if another process has it."""
        try:
            self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB, run)
        except (BlockingIOError, PermissionError):
            raise Busy(f"{run} is being measured by another process", "wait until it has ended, or stop it") from None
        self._mine.add(run)

    def free(self, run: str) -> None:
        self._mine.discard(run)
        self._lock(fcntl.LOCK_UN, run)

    def elsewhere(self, run: str) -> bool:
        """True if another process has it."""
        if run in self._mine:
            return False
        try:
            self.take(run)
        except Busy:
            return True
        self.free(run)
        return False

    def close(self) -> None:
        """Frees all."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1
        self._mine.clear()

    def _lock(self, how: int, run: str) -> None:
        if self._handle < 0:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.lockf(self._handle, how, 1, zlib.crc32(run.encode()))


# Rows come by the hundred in a second: what a killed process wrote is there, and a power cut ends a benchmark anyhow.
_SCHEMA = database.Schema("run_migrations", "NORMAL", checked=False)
_PARTS = "SELECT run, sum(complete) AS done FROM levels GROUP BY run"
_COUNTS = """
SELECT run, count(*) AS requests, sum(failed) AS errors FROM requests JOIN levels ON key = level GROUP BY run
"""
_LIST = f"""
SELECT runs.*, coalesce(done, 0) AS done, coalesce(requests, 0) AS requests, coalesce(errors, 0) AS errors
FROM runs LEFT JOIN ({_PARTS}) AS parts ON parts.run = id LEFT JOIN ({_COUNTS}) AS counts ON counts.run = id
ORDER BY began DESC, id DESC
"""
_HOME = "make the folder writable; XDG_STATE_HOME=FOLDER stores runs elsewhere for this call"
_HINTS = {
    sqlite3.SQLITE_FULL: "free some space; what was measured until now is kept",
    sqlite3.SQLITE_BUSY: "another process has kept it for itself for seconds; once more when that has ended",
}
_ROW = "INSERT INTO requests (level, failed, data, reads) VALUES (?, ?, ?, ?)"


class SqliteRuns:
    """Implements ports.RunStore in one file; the file and its folder are made at the first need.

    What was added is there when the call returns, whatever happens to this process afterwards. Methods raise
    StoreError. A run that is measured is held until its end; what would disturb it raises Busy in other processes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._holds = Holds(path.with_suffix(".lock"))
        self._thread = ThreadPoolExecutor(1, "runs")

    async def aclose(self) -> None:
        await self._close()
        self._thread.shutdown()

    @threaded
    def _close(self) -> None:
        self._disconnect()
        self._holds.close()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @threaded
    def begin(self, run: Run) -> None:
        with self._change() as connection:
            self._holds.take(run.id)
            _insert(connection, "runs", records.run_record(run))

    @threaded
    def take_up(self, run_id: str) -> Run:
        """Held, and then read: nobody adds to it any more. Raises Busy, UsageError."""
        with self._read():
            self._holds.take(run_id)
        return self._load(run_id)

    @threaded
    def add_level(self, run_id: str, level: Level) -> int:
        """A complete one of the same repeat stays and is refused."""
        with self._change() as connection:
            place = (run_id, level.plan.name, level.repeat)
            connection.execute("DELETE FROM levels WHERE run = ? AND name = ? AND repeat = ? AND complete = 0", place)
            key = _insert(connection, "levels", {**records.level_record(run_id, level), "complete": 0})
            _insert_rows(connection, key, level.rows)
        return key

    @threaded
    def add_rows(self, key: int, rows: Sequence[Row]) -> None:
        with self._change() as connection:
            _insert_rows(connection, key, rows)

    @threaded
    def end_level(self, key: int, level: Level) -> None:
        told = records.level_record("", level)
        names = ("began", "seconds", "lag", "scrapes", "doubts", "complete")
        with self._change() as connection:
            changed = ", ".join(f"{name} = :{name}" for name in names)
            connection.execute(f"UPDATE levels SET {changed} WHERE key = :key", {**told, "key": key})

    @threaded
    def end(self, run_id: str, state: str, at: float) -> None:
        with self._change() as connection:
            connection.execute("UPDATE runs SET state = ?, ended = ? WHERE id = ?", (state, at, run_id))
        if state != "running":
            self._holds.free(run_id)

    @threaded
    def set_evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        with self._change() as connection:
            text = records.drop_surrogates(to_json(evaluation))
            connection.execute("UPDATE runs SET evaluation = ? WHERE id = ?", (text, run_id))

    @threaded
    def add(self, run: Run) -> None:
        with self._change() as connection:
            _insert(connection, "runs", records.run_record(run))
            for level in run.levels:
                _insert_rows(connection, _insert(connection, "levels", records.level_record(run.id, level)), level.rows)

    @threaded
    def tag(self, run_id: str, tags: Sequence[str]) -> None:
        with self._change() as connection:
            connection.execute("UPDATE runs SET tags = ? WHERE id = ?", (json.dumps(tags), run_id))

    @threaded
    def delete(self, run_id: str) -> None:
        with self._change() as connection:
            self._holds.take(run_id)
            connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))
        self._holds.free(run_id)
        with suppress(StoreError), self._read() as connection:
            # Gives the room back to the disk. It shuts others out for as long as it takes: not while one measures.
            if not connection.execute("SELECT 1 FROM runs WHERE state = 'running'").fetchone():
                connection.execute("VACUUM")

    @threaded
    def list(self) -> tuple[RunListing, ...]:
        with self._read() as connection:
            return tuple(map(records.listed, connection.execute(_LIST)))

    @threaded
    def load(self, run_id: str) -> Run:
        return self._load(run_id)

    def _load(self, run_id: str) -> Run:
        with self._read() as connection:
            connection.execute("BEGIN")  # one state of it, whoever writes
            try:
                record = connection.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
                if record is None:
                    raise UsageError(f"no run {run_id}", "sparkwright runs list shows what there is")
                return records.run_from_record(record, tuple(_levels(connection, run_id)))
            finally:
                connection.execute("COMMIT")

    @threaded
    def unfinished(self, workload: Workload, endpoint: str) -> str | None:
        with self._read() as connection:
            found = connection.execute("SELECT * FROM runs WHERE state != 'done' ORDER BY began DESC, id DESC")
            like = (record["id"] for record in found if _is_of(record, workload, endpoint))
            return next((run for run in like if not self._holds.elsewhere(run)), None)

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._read() as connection, database.transaction(connection):
            yield connection

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None:
                self._connection = database.opened(self._path, _SCHEMA)
                self._connection.row_factory = _record
            yield self._connection
        except database.Newer as error:
            raise StoreError(str(error), "use the sparkwright that wrote it, or a later one") from None
        except (sqlite3.Error, OSError) as error:
            self._disconnect()
            raise _trouble(self._path, error) from error
        except Unreadable as error:
            raise StoreError(f"{self._path}: a run cannot be read: {error}") from None


def _record(cursor: sqlite3.Cursor, values: tuple[object, ...]) -> records.Record:
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}


def _insert(connection: sqlite3.Connection, table: str, record: records.Record) -> int:
    names = ", ".join(record)
    values = ", ".join(f":{name}" for name in record)
    return connection.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", record).lastrowid or 0


def _insert_rows(connection: sqlite3.Connection, key: int, rows: Sequence[Row]) -> None:
    connection.executemany(_ROW, ((key, *records.row_record(row)) for row in rows))


def _levels(connection: sqlite3.Connection, run: str) -> Iterator[Level]:
    for record in connection.execute("SELECT * FROM levels WHERE run = ? ORDER BY key", (run,)).fetchall():
        rows = connection.execute("SELECT data, reads FROM requests WHERE level = ? ORDER BY id", (record["key"],))
        yield records.level_of(record, tuple(records.row_from_json(row["data"], row["reads"]) for row in rows))


def _is_of(record: records.Record, workload: Workload, endpoint: str) -> bool:
    """True if the record is of this workload as it reads today."""
    try:
        kept = records.run_from_record(record, ())
    except Unreadable:
        return False
    return kept.workload == workload and kept.conditions.endpoint == endpoint


def _trouble(path: Path, error: Exception) -> StoreError:
    if database.is_damaged(error):
        return StoreError(f"{path} is damaged: {error}", f"move it away and start a new one: mv {path} {path}.damaged")
    hint = _HINTS.get(getattr(error, "sqlite_errorcode", 0), _HOME)
    what, why = getattr(error, "filename", None) or path, getattr(error, "strerror", None) or error
    return StoreError(f"{what} cannot be used: {why}", hint)
