"""What keys used, by day and model: one small database on the head, written at the begin and the end of a request.

No fsync: a process that is killed loses nothing, a machine without power the last seconds.
"""

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from sparkwright.domain.errors import CommandFailed
from sparkwright.gateway.usage import Tokens, Used

FILE = "usage.sqlite"
OUTCOMES = ("finished", "uncounted", "cut", "failed")
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


class UsageStore:
    """Rows are (day, key, model). A database that cannot be written costs counts, never a request; it is noted once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._link: sqlite3.Connection | None = None
        self._noted = False
        with suppress(OSError):
            self._path.touch(0o600)
        self._open()

    def begin(self, row: Row) -> None:
        self._write(_BEGIN, *row, 1)

    def refuse(self, row: Row) -> None:
        self._write(_REFUSE, *row, 1)

    def end(self, row: Row, outcome: str, tokens: Tokens | None, at_least: int = 0) -> None:
        """at_least: tokens that passed beyond those."""
        made = tokens or Tokens()
        self._write(_END[outcome], *row, 1, made.prompt, made.completion, made.cached, at_least)

    def minute(self, key: str, at: float, since: float) -> None:
        """A request that counts until `since` has passed it; seconds of the monotonic clock, which a restart keeps."""
        self._write("DELETE FROM minutes WHERE at < ?", since)
        self._write("INSERT OR IGNORE INTO minutes VALUES (?, ?)", at, key)

    def minutes(self, since: float, now: float) -> Sequence[tuple[str, float]]:
        """(key, at), the oldest first. Those of an earlier boot of the machine are gone."""
        self._write("DELETE FROM minutes WHERE at < ? OR at > ?", since, now)
        try:
            return self._link.execute("SELECT key, at FROM minutes ORDER BY at").fetchall() if self._link else ()
        except sqlite3.Error as error:
            self._note(error)
            return ()

    def today(self, day: str, key: str) -> int:
        """Tokens of a key; 0 where that cannot be read."""
        try:
            return int(self._link.execute(_TODAY, (day, key)).fetchone()[0]) if self._link else 0
        except sqlite3.Error as error:
            self._note(error)
            return 0

    def _open(self) -> None:
        try:
            self._link = sqlite3.connect(self._path, timeout=0.1, isolation_level=None)
            for order in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF", _TABLE, _MINUTES):
                self._link.execute(order)
            known = {row[1] for row in self._link.execute("PRAGMA table_info(usage)")}
            for name in (name for name in _COLUMNS if name not in known):  # made by an earlier version
                self._link.execute(f"ALTER TABLE usage ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0")
        except sqlite3.Error as error:
            self._note(error)

    def _write(self, order: str, *values: str | float) -> None:
        try:
            if self._link:
                self._link.execute(order, values)
        except sqlite3.Error as error:
            self._note(error)

    def _note(self, error: sqlite3.Error) -> None:
        if not self._noted:
            self._noted = True
            sys.stderr.write(f"{self._path}: usage is not counted: {error}\n")


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
