"""Writes the usage of keys in a thread, the rows of many requests together: no answer waits for the disk."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from sparkwright.adapters.sqlite.usage import Row, UsageStore
from sparkwright.domain.history import RequestRecord
from sparkwright.gateway.usage import Tokens

GATHERED = 0.05
"""Seconds of rows in one transaction: what is lost when the process is killed."""
_MOST = 20_000
"""Rows that wait for a disk that takes none; more are not counted."""


class UsageWriter:
    """A UsageStore whose rows are written a little later."""

    def __init__(self, store: UsageStore) -> None:
        self._store, self._waiting = store, deque[Callable[[], None]]()
        self._thread = ThreadPoolExecutor(1, "usage")
        self._soon = self._ended = self._dropped = False

    @property
    def trouble(self) -> str:
        """The reason why usage is not counted, or not in full; '' for none."""
        slow = "usage is not counted in full: the disk takes its rows too slowly" if self._dropped else ""
        return self._store.trouble or slow

    def begin(self, row: Row) -> None:
        self._add(partial(self._store.begin, row))

    def refuse(self, row: Row) -> None:
        self._add(partial(self._store.refuse, row))

    def end(self, row: Row, outcome: str, tokens: Tokens | None, at_least: int = 0) -> None:
        self._add(partial(self._store.end, row, outcome, tokens, at_least))

    def record(self, request: RequestRecord) -> None:
        self._add(partial(self._store.record, request))

    def minute(self, key: str, at: float, since: float) -> None:
        self._add(partial(self._store.minute, key, at, since))

    def minutes(self, since: float, now: float) -> Sequence[tuple[str, float]]:
        return self._store.minutes(since, now)

    def today(self, day: str, key: str) -> int:
        """Tokens of a key, also those that were not written yet: they are now."""
        self._write()
        return self._store.today(day, key)

    def _add(self, row: Callable[[], None]) -> None:
        self._dropped = len(self._waiting) >= _MOST
        if not self._dropped:
            self._waiting.append(row)
        if self._ended:
            self._write()
        elif not self._soon:
            self._soon = True
            self._thread.submit(self._write_soon)

    def _write_soon(self) -> None:
        time.sleep(GATHERED)
        self._soon = False
        self._write()

    def _write(self) -> None:
        self._store.write_together(self._waiting)

    def end_gathering(self) -> None:
        """Write what waits. What ends after this, as the process does, is written at once."""
        self._ended = True
        self._write()
