"""The ranks' logs as they grow: followed once for all who read, and only while somebody does."""

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import accumulate, islice

from sparkwright.app import queries
from sparkwright.app.diagnose import name_of, words_of, year_of
from sparkwright.app.diagnose_watch import Watching
from sparkwright.app.services import Services
from sparkwright.console.board import Watch
from sparkwright.console.figures import clean, short
from sparkwright.console.head import services
from sparkwright.console.sessions import Visitor
from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.facts import RankStatus
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.report.markup import Html, join, tag

_TAIL, _KEPT, _BATCH = 200, 1500, 200
_LONGEST, _PAGE = 2000, 100_000
_GATHER, _STILL, _AGAIN, _REST = 0.25, 15.0, 2.0, 10.0
_SCRAPED = 'metrics HTTP/1.1" 200'  # every second, by the supervisor itself
_BAD = re.compile(r"\b(?:ERROR|CRITICAL|FATAL|Traceback)\b")
_DOUBT = re.compile(r"\bWARN(?:ING)?\b")


class Follower:
    """Of one deployment. lines: (number, markup), the last ones."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.lines: deque[tuple[int, Html]] = deque(maxlen=_KEPT)
        self._last = 0
        self._changed = asyncio.Event()
        self.readers = 0
        self._task: asyncio.Task[None] | None = None

    def _put(self, *rows: Html) -> None:
        for row in rows:
            self._last += 1
            self.lines.append((self._last, clean(row)))
        self._changed.set()
        self._changed = asyncio.Event()

    async def first(self) -> tuple[tuple[int, Html], ...]:
        """Those of a page; waits a moment for the first ones."""
        self._begin()
        if not self.lines:
            try:
                async with asyncio.timeout(2.0):
                    await self._changed.wait()
            except TimeoutError:
                return ()
        return fitting(self.lines)

    async def events(self, after: int, visitor: Callable[[], Visitor | None]) -> AsyncIterator[str]:
        """Those after a number, as they come; until the visitor's key is gone."""
        self.readers += 1
        try:
            while (who := visitor()) and who.key.deployment in ("", self._watch.name):
                self._begin()
                changed = self._changed
                fresh = [(number, row) for number, row in self.lines if number > after]
                after = fresh[-1][0] if fresh else after
                rows = json.dumps("".join(row for _, row in fresh))
                yield f"id: {after}\nevent: lines\ndata: {rows}\n\n" if fresh else ": still here\n\n"
                try:
                    async with asyncio.timeout(_STILL if fresh else 1.0):
                        await changed.wait()
                except TimeoutError:
                    continue
            yield "event: gone\ndata: {}\n\n"
        finally:
            self.readers -= 1

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Again for the ranks of the next start; ends when nobody reads."""
        reading, mark = asyncio.create_task(self._read()), self._mark()
        try:
            idle = 0.0
            while idle < _REST:
                await asyncio.sleep(_AGAIN)
                idle = 0.0 if self.readers else idle + _AGAIN
                if reading.done() and mark != self._mark():
                    self._put(tag("div", "the ranks were started again", class_="line note"))
                    reading, mark = asyncio.create_task(self._read()), self._mark()
        finally:
            reading.cancel()
            self.lines.clear()

    def _mark(self) -> tuple[object, ...]:
        """Differs between one start of the ranks and the next."""
        live = self._watch.live
        return (live.relaunches, *(rank.started for rank in live.ranks if rank.running)) if live else ()

    async def _read(self) -> None:
        try:
            async with services(self._watch, "logs") as made:
                await self._gathered(made)
            said = "the logs ended: no rank runs"
        except SparkwrightError as error:
            said = f"the logs cannot be read: {error.message}"
        self._put(tag("div", short(said), class_="line note"))

    async def _gathered(self, made: Services) -> None:
        """In batches: rules are read in a thread, so that no log holds up the pages."""
        queue: asyncio.Queue[tuple[RankStatus, str]] = asyncio.Queue(2 * _BATCH)

        async def pump() -> None:
            async with aclosing(queries.logs(made, self._watch.name, None, _TAIL, True)) as stream:  # type: ignore[type-var]
                async for one in stream:
                    await queue.put(one)

        ranks = await queries.chosen(made, self._watch.name, None)
        watching = await asyncio.to_thread(Watching, year_of(made), words_of(ranks))
        pumping = asyncio.create_task(pump())
        try:
            while not (pumping.done() and queue.empty()):
                await asyncio.sleep(_GATHER)
                batch = [queue.get_nowait() for _ in range(min(queue.qsize(), _BATCH))]
                if batch:
                    self._put(*await asyncio.to_thread(_rows, watching, batch))
            await pumping
        finally:
            pumping.cancel()


def fitting(lines: Sequence[tuple[int, Html]]) -> tuple[tuple[int, Html], ...]:
    """The last ones, as many as a page of less than 150 kB holds."""
    weights = accumulate(len(row.encode()) for _, row in reversed(lines))
    count = sum(1 for weight in weights if weight <= _PAGE)
    return tuple(islice(lines, len(lines) - count, None))


def _rows(watching: Watching, batch: list[tuple[RankStatus, str]]) -> list[Html]:
    shown = ((rank, line[:_LONGEST]) for rank, line in batch if _SCRAPED not in line)
    return [row for rank, line in shown for row in _marked(watching, rank, line)]


def _marked(watching: Watching, rank: RankStatus, line: str) -> Iterator[Html]:
    """The line, and below it each cause that it is the first to show."""
    kind = "bad" if _BAD.search(line) else "doubt" if _DOUBT.search(line) else ""
    yield tag("div", tag("span", str(rank.rank), class_="rank"), line, class_=f"line {kind}".strip())
    for cause in watching.feed(name_of(rank), f"{line}\n".encode("utf-8", "replace")):
        yield _cause(cause)


def _cause(cause: Cause) -> Html:
    fix = f" fix: {cause.fix[0]}" if cause.fix else ""
    return tag(
        "div", tag("b", cause.title), f" ({cause.code}, {cause.confidence:.0%})", short(fix), class_="line cause"
    )


def page(names: tuple[str, ...], name: str, lines: tuple[tuple[int, Html], ...]) -> Html:
    """The lines that are there; those that come are added."""
    links = (
        tag("a", one, href=f"{CONSOLE_PATH}/logs/{one}", aria_current="page" if one == name else None) for one in names
    )
    choice = tag("nav", *links, aria_label="Deployments", class_="spans") if len(names) > 1 else ""
    empty = tag("div", "no line has come yet", class_="line note")
    box = tag(
        "div", *([row for _, row in lines] or [empty]), id="log", tabindex="0", role="log", aria_label="Log lines"
    )
    note = "The number before a line is its rank. Errors, warnings and known causes are marked."
    return join(tag("h1", f"Logs of {name}"), choice, tag("p", note, class_="soft"), box)
