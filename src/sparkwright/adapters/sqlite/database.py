"""The database file: opened in the state it must be in, migrated, set aside when damaged; writes that never fail."""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from sparkwright.adapters.artifacts import private_folder
from sparkwright.domain.values import dataclass

_BUSY = 5.0  # seconds that one writer waits for another: two deployments may share a head
_PAUSE = 0.01
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR)
_KEPT = 3
_PRIMARY = 0xFF  # of an extended result code
_SETTINGS = ("journal_mode=WAL", "foreign_keys=ON", "journal_size_limit=1048576")


@dataclass(frozen=True, slots=True)
class Schema:
    """migrations: folder next to this file. synchronous: FULL has a commit on the disk when it returns; with NORMAL a
    power cut may cost the last ones, a killed process none. checked: whether each opening verifies the whole file.
    """

    migrations: str
    synchronous: str
    checked: bool


# Writes are a few a minute, and power that is cut is what they tell of.
HISTORY = Schema("migrations", "FULL", checked=True)


class Newer(Exception):
    """A later version of sparkwright has written this file."""


class Damaged(sqlite3.DatabaseError):
    """The file's own structure is wrong."""


def migrations(schema: Schema = HISTORY) -> tuple[str, ...]:
    """Number n makes version n of an n-1; `user_version` in the file is its version."""
    folder = files(__package__ or "") / schema.migrations
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return tuple(entry.read_text(encoding="utf-8") for entry in found)


def opened(path: Path, schema: Schema = HISTORY) -> sqlite3.Connection:
    """A connection for writing, for one thread. Raises Newer, Damaged, sqlite3.Error, OSError."""
    private_folder(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
    try:
        _check(connection, path, schema)
        for setting in (*_SETTINGS, f"synchronous={schema.synchronous}"):
            _set(connection, setting)
        # One transaction each; another process may have been here first
        texts = migrations(schema)
        for number, text in enumerate(texts, 1):
            if version_of(connection) >= number:
                continue
            with transaction(connection):
                if version_of(connection) < number:
                    for statement in _statements(text):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version={number}")
    except BaseException:
        connection.close()
        raise
    return connection


def _set(connection: sqlite3.Connection, setting: str) -> None:
    """Tried again while another writer is in the way: SQLite's own wait does not cover the change to WAL."""
    until = time.monotonic() + _BUSY
    while True:
        try:
            connection.execute(f"PRAGMA {setting}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


def _check(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    """Checks version and integrity before any change."""
    version, known = version_of(connection), len(migrations(schema))
    if version > known:
        raise Newer(f"{path} has version {version}, from a later sparkwright; this one knows version {known}")
    if not schema.checked:
        return
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise Damaged(found)


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(text: str) -> Iterator[str]:
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite has rolled back by itself when the disk is full
            connection.execute("ROLLBACK")
        raise


def is_damaged(error: BaseException) -> bool:
    """True if the file is at fault, not its disk or another writer."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, Damaged) or (code & _PRIMARY) in _DAMAGED


def may_pass(error: BaseException) -> bool:
    """True if the error may pass: a full disk, another writer."""
    code = getattr(error, "sqlite_errorcode", 0)
    return (code & _PRIMARY) in _PASSING or getattr(error, "errno", 0) == errno.ENOSPC


def set_aside(path: Path, now: float) -> Path:
    """Renames the file and what SQLite keeps next to it; the last few such are kept. Raises OSError."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for end in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{aside}{end}")
    old = sorted({entry.name[: len(aside.name)] for entry in path.parent.glob(f"{path.name}.damaged-*")})
    for name in old[:-_KEPT]:
        for entry in path.parent.glob(f"{name}*"):
            entry.unlink(missing_ok=True)
    return aside


T = TypeVar("T")


_PRUNE_EVERY = 200  # writes
_DAY = 86400.0
_HOUR = 3600.0
# (table, rows that may go, the newest that stay, days)
_BOUNDS = (
    ("events", "1", 20_000, 90),
    ("incidents", "closed_at > 0", 500, 400),
    ("deployments", "ended_at > 0", 200, 400),
)
_PRUNE = """
DELETE FROM {table} WHERE {may} AND (
  rowid <= (SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT 1 OFFSET {newest}) OR {at} < :before)
"""


class Seldom:
    """Reports a trouble once an hour at most: a disk that is nearly full takes one write and refuses the next."""

    def __init__(self, notice: Callable[[str], None], now: Callable[[], float]) -> None:
        self._notice = notice
        self._now = now
        self._told = -_HOUR

    def report(self, text: str) -> None:
        if self._now() - self._told >= _HOUR:
            self._told = self._now()
            self._notice(text)


class History:
    """The database of one thread. A write that fails is dropped, and the file is opened again for the next one.

    catch_up: the first thing in the first transaction of each opening.
    """

    def __init__(
        self,
        path: Path,
        notice: Callable[[str], None],
        now: Callable[[], float],
        catch_up: Callable[[sqlite3.Connection], None],
    ) -> None:
        self._path = path
        self._catch_up = catch_up
        self._notice = notice
        self._now = now
        self._trouble = Seldom(notice, now)
        self._connection: sqlite3.Connection | None = None
        self._writes = 0
        self._newer = False
        self._lost: Path | None = None
        self._why = ""

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T | None:
        """Runs `change` in one transaction and returns its result; None if it could not be written."""
        if self._newer:
            return None
        try:
            return self._written(change)
        except (sqlite3.Error, OSError) as error:
            self.close()
            if not is_damaged(error):
                self._dropped(str(error), passing=may_pass(error))
                return None
        return self._begin_anew(change)

    @property
    def wrong(self) -> str:
        """The trouble that only a person can fix, '' for none. A full disk is the journal's to report: it comes and
        goes."""
        if self._why:
            return f"history is not written: {self._why}"
        if self._lost and self._lost.exists():
            return f"{self._path} was damaged and replaced by a new one; inspect {self._lost.name}, then remove it"
        return ""

    def again(self) -> None:
        """Tries to write again, in case the trouble has been fixed."""
        self._newer = False
        self.write(lambda _: None)

    def _begin_anew(self, change: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            self._lost = aside = set_aside(self._path, self._now())
            self._notice(f"{self._path} was damaged: renamed to {aside.name}, a new one is begun")
            return self._written(change)
        except (sqlite3.Error, OSError) as error:
            self.close()
            self._dropped(str(error))
            return None

    def _written(self, change: Callable[[sqlite3.Connection], T]) -> T | None:
        fresh = self._connection is None
        try:
            connection = self._connection or opened(self._path)
        except Newer as error:
            self._newer = True
            self._dropped(f"{error}; use that one, or move the file aside: incidents keep their own folders")
            return None
        self._connection = connection
        with transaction(connection):
            if fresh:
                self._catch_up(connection)
            done = change(connection)
            if self._writes % _PRUNE_EVERY == 0:
                for table, may, newest, days in _BOUNDS:
                    at = "opened_at" if table == "incidents" else "at"
                    text = _PRUNE.format(table=table, may=may, newest=newest, at=at)
                    connection.execute(text, {"before": self._now() - days * _DAY})
        self._writes += 1
        self._why = ""
        return done

    def _dropped(self, why: str, passing: bool = False) -> None:
        said = why if str(self._path) in why else f"{self._path}: {why}"
        self._why = "" if passing else said
        self._trouble.report(f"history is not written, supervision goes on: {said}")

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
