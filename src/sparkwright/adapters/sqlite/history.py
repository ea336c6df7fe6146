"""Writes that are made, or dropped with one notice: no trouble with a disk may stop the supervision."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sparkwright.adapters.sqlite import database

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
    """For one thread. A write that fails is dropped, and the file is opened again for the next one.

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
        """What `change` returns, in one transaction; None when it could not be written."""
        if self._newer:
            return None
        try:
            return self._written(change)
        except (sqlite3.Error, OSError) as error:
            self.close()
            if not database.is_damaged(error):
                self._dropped(str(error), passing=database.may_pass(error))
                return None
        return self._begin_anew(change)

    @property
    def wrong(self) -> str:
        """What only a person can fix, '' when nothing is. A full disk is the journal's to report: it comes and goes."""
        if self._why:
            return f"history is not written: {self._why}"
        if self._lost and self._lost.exists():
            return f"{self._path} was damaged and replaced by a new one; inspect {self._lost.name}, then remove it"
        return ""

    def again(self) -> None:
        """Whether it has been fixed."""
        self._newer = False
        self.write(lambda _: None)

    def _begin_anew(self, change: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            self._lost = aside = database.set_aside(self._path, self._now())
            self._notice(f"{self._path} was damaged: renamed to {aside.name}, a new one is begun")
            return self._written(change)
        except (sqlite3.Error, OSError) as error:
            self.close()
            self._dropped(str(error))
            return None

    def _written(self, change: Callable[[sqlite3.Connection], T]) -> T | None:
        fresh = self._connection is None
        try:
            connection = self._connection or database.opened(self._path)
        except database.Newer as error:
            self._newer = True
            self._dropped(f"{error}; use that one, or move the file aside: incidents keep their own folders")
            return None
        self._connection = connection
        with database.transaction(connection):
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
