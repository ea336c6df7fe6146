"""The usage of keys by day and model: one small database on the head, with rows for the begin and the end of a request.

What was written survives the process; a machine without power loses the last seconds. A file that is damaged all the
same is set aside, and a new one begun.
"""

import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from sparkwright.adapters.sqlite.database import is_damaged, set_aside
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.history import RequestRecord, RequestSpan
from sparkwright.domain.values import replace
from sparkwright.gateway.usage import DAY, Tokens, Used

FILE = "usage.sqlite"
OUTCOMES = ("finished", "uncounted", "cut", "failed", "looped", "reasoned")
_COLUMNS = ("requests", *OUTCOMES, "refused", "prompt", "completion", "cached", "at_least")
_TABLE = f"""
CREATE TABLE IF NOT EXISTS usage (day TEXT, key TEXT, model TEXT,
  {", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in _COLUMNS)},
  PRIMARY KEY (day, key, model)) WITHOUT ROWID
"""
_MINUTES = "CREATE TABLE IF NOT EXISTS minutes (at REAL, key TEXT, PRIMARY KEY (at, key)) WITHOUT ROWID"
_ADD = """INSERT INTO usage (day, key, model, {0}) VALUES (?, ?, ?, {1})
ON CONFLICT DO UPDATE SET {2}"""


def _adding(*columns: str) -> str:
    sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in columns)
    return _ADD.format(", ".join(columns), ", ".join("?" * len(columns)), sums)


_BEGIN, _REFUSE = _adding("requests"), _adding("refused")
_END = {outcome: _adding(outcome, "prompt", "completion", "cached", "at_least") for outcome in OUTCOMES}
_TODAY = "SELECT coalesce(sum(prompt + completion + at_least), 0) FROM usage WHERE day = ? AND key = ?"
Row = tuple[str, str, str]


# The requests of the last day, for people to look at: no texts.
_REQUEST_COLUMNS = tuple(RequestRecord.__dataclass_fields__)
_REQUESTS = """
CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, at REAL, key TEXT, model TEXT, path TEXT, status INTEGER,
  outcome TEXT, seconds REAL, first REAL, prompt INTEGER, cached INTEGER, completion INTEGER)
"""
_RECORD = f"INSERT INTO requests ({', '.join(_REQUEST_COLUMNS)}) VALUES ({', '.join('?' * len(_REQUEST_COLUMNS))})"
_FORGET = "DELETE FROM requests WHERE id <= (SELECT max(id) - ? FROM requests) OR at < ?"
_KEPT_REQUESTS, _FORGET_EVERY, _NAME = 50_000, 200, 200
_SETTINGS = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _TABLE, _MINUTES, _REQUESTS)
_AGAIN = 10.0
T = TypeVar("T")


class UsageStore:
    """Rows are (day, key, model). A database that cannot be written costs counts, never a request.

    trouble: what is wrong with it now, '' for nothing; each new one is also a line on stderr. Threads take turns.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = folder / FILE, clock
        self._link: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        self._again, self._recorded = 0.0, 0
        self.trouble = ""
        with suppress(OSError):
            self._path.touch(0o600)
        self._done(lambda link: None)

    def begin(self, row: Row) -> None:
        self._write(_BEGIN, *row, 1)

    def refuse(self, row: Row) -> None:
        self._write(_REFUSE, *row, 1)

    def end(self, row: Row, outcome: str, tokens: Tokens | None, at_least: int = 0) -> None:
        """Ends a request. at_least: tokens that passed beyond `tokens`."""
        made = tokens or Tokens()
        self._write(_END[outcome], *row, 1, made.prompt, made.completion, made.cached, at_least)

    def record(self, request: RequestRecord) -> None:
        """One of the last day's requests, once it is over."""
        row = replace(request, key=request.key[:_NAME], model=request.model[:_NAME], path=request.path[:_NAME])
        self._write(_RECORD, *(getattr(row, name) for name in _REQUEST_COLUMNS))
        self._recorded += 1
        if self._recorded % _FORGET_EVERY == 1:
            self._write(_FORGET, _KEPT_REQUESTS, request.at - DAY)

    def minute(self, key: str, at: float, since: float) -> None:
        """A request that counts until `since` has passed it; seconds of the monotonic clock, which a restart keeps."""
        self._write("DELETE FROM minutes WHERE at < ?", since)
        self._write("INSERT OR IGNORE INTO minutes VALUES (?, ?)", at, key)

    def minutes(self, since: float, now: float) -> Sequence[tuple[str, float]]:
        """(key, at), the oldest first. Those of an earlier boot of the machine are gone."""
        self._write("DELETE FROM minutes WHERE at < ? OR at > ?", since, now)
        return self._done(lambda link: link.execute("SELECT key, at FROM minutes ORDER BY at").fetchall()) or ()

    def today(self, day: str, key: str) -> int:
        """Tokens of a key; 0 where that cannot be read."""
        return self._done(lambda link: int(link.execute(_TODAY, (day, key)).fetchone()[0])) or 0

    def write_together(self, waiting: deque[Callable[[], None]]) -> None:
        """Take the calls of this store that wait, and make them in one transaction: one write of the disk."""
        with self._lock:
            if not waiting:
                return
            self._done(lambda link: link.execute("BEGIN IMMEDIATE"))
            for _ in range(len(waiting)):
                waiting.popleft()()
            self._done(lambda link: link.in_transaction and link.execute("COMMIT"))

    def _write(self, order: str, *values: str | float | None) -> None:
        self._done(lambda link: link.execute(order, values))

    def _done(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do it, once more in a new file if this one is damaged. None where that is not possible now."""
        with self._lock:
            return self._done_alone(work)

    def _done_alone(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if self._link is None and self._clock() < self._again:
            return None
        try:
            return self._tried(work)
        except sqlite3.Error as error:
            self._close()
            if not is_damaged(error):
                self._failed(error)
                return None
        try:
            aside = set_aside(self._path, time.time())
            sys.stderr.write(f"{self._path} was damaged: renamed to {aside.name}, a new one is begun\n")
            self._path.touch(0o600)
            return self._tried(work)
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
            return None

    def _tried(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._link = self._link or self._opened()
        done = work(self._link)
        self.trouble = ""
        return done

    def _opened(self) -> sqlite3.Connection:
        link = sqlite3.connect(self._path, timeout=0.1, isolation_level=None, check_same_thread=False)
        try:
            for order in _SETTINGS:
                link.execute(order)
            known = {row[1] for row in link.execute("PRAGMA table_info(usage)")}
            for name in (name for name in _COLUMNS if name not in known):  # made by an earlier version
                link.execute(f"ALTER TABLE usage ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0")
        except BaseException:
            link.close()
            raise
        return link

    def _close(self) -> None:
        if self._link:
            with suppress(sqlite3.Error):
                self._link.close()
        self._link = None

    def _failed(self, error: Exception) -> None:
        """Requests go on uncounted; it is tried again in a while."""
        self._close()
        self._again = self._clock() + _AGAIN
        if not self.trouble:
            sys.stderr.write(f"{self._path}: usage is not counted: {error}\n")
        self.trouble = f"usage is not counted and limits of tokens do not hold: {self._path}: {error}"


_READ = "SELECT * FROM usage WHERE day >= ? ORDER BY day DESC, key, model LIMIT ?"
_MOST_ROWS = 5000


def used_since(folder: Path, day: str) -> tuple[Used, ...]:
    """Newest first; () where nothing was counted. Raises CommandFailed for what cannot be read."""
    path = folder / FILE
    if not path.exists():
        return ()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as link:
            link.row_factory = sqlite3.Row  # an earlier version's table has fewer columns
            rows = link.execute(_READ, (day, _MOST_ROWS)).fetchall()
        return tuple(Used(**dict(row)) for row in rows)
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise CommandFailed("this head", f"what keys used cannot be read: {error}", f"see {path}") from error


_LATEST = f"SELECT {', '.join(_REQUEST_COLUMNS)} FROM requests WHERE at >= ? ORDER BY id DESC LIMIT ?"


def requests_since(folder: Path, since: float, most: int) -> tuple[RequestRecord, ...]:
    """Newest first; () where none was recorded. Raises CommandFailed for what cannot be read."""
    path = folder / FILE
    if not path.exists():
        return ()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as link:
            if not link.execute("SELECT 1 FROM sqlite_master WHERE name = 'requests'").fetchone():
                return ()  # an earlier version's file
            return tuple(RequestRecord(*row) for row in link.execute(_LATEST, (since, most)))
    except sqlite3.Error as error:
        raise CommandFailed("this head", f"the last requests cannot be read: {error}", f"see {path}") from error


_BY_TIME = """SELECT CAST(at / :step AS INTEGER) * :step, count(*), coalesce(sum(outcome = 'failed' OR status = 0), 0),
  coalesce(sum(outcome = 'refused'), 0), avg(CASE WHEN outcome = 'finished' THEN first END),
  avg(CASE WHEN outcome = 'finished' AND completion > 1 THEN (seconds - first) / (completion - 1) END)
FROM requests WHERE at >= :since AND model IN ({}) GROUP BY 1 ORDER BY 1"""


def spans_since(folder: Path, models: Collection[str], since: float, step: int) -> tuple[RequestSpan, ...]:
    """Requests of these models by stretches of `step` seconds, oldest first. Raises CommandFailed."""
    path = folder / FILE
    if not path.exists() or not models:
        return ()
    names = {f"m{place}": name for place, name in enumerate(sorted(models))}
    text = _BY_TIME.format(", ".join(f":{name}" for name in names))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as link:
            if not link.execute("SELECT 1 FROM sqlite_master WHERE name = 'requests'").fetchone():
                return ()
            rows = link.execute(text, {"step": step, "since": since, **names}).fetchall()
        return tuple(RequestSpan(*row) for row in rows)
    except sqlite3.Error as error:
        raise CommandFailed("this head", f"the last requests cannot be read: {error}", f"see {path}") from error
