"""The ranks' logs as they grow: followed once for all who read, and only while somebody does."""

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import accumulate, islice

from sparkwright.app import queries
from sparkwright.app.diagnose.diagnosing import name_of, words_of, year_of
from sparkwright.app.diagnose.log_watch import Watching
from sparkwright.app.services import Services
from sparkwright.console.board import DeploymentWatch
from sparkwright.console.feed import STILL_HERE
from sparkwright.console.figures import shortened, without_controls
from sparkwright.console.head import services
from sparkwright.console.sessions import Visitor
from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.printable import printable
from sparkwright.domain.values import dataclass, replace
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.report.markup import Html, html_tag, join_html

_TAIL, _KEPT, _BATCH = 200, 1500, 200
_LONGEST, _PAGE = 2000, 100_000
_GATHER, _STILL, _AGAIN, _REST = 0.25, 15.0, 2.0, 10.0
_SCRAPED = 'metrics HTTP/1.1" 200'  # every second, by the supervisor itself
_BAD = re.compile(r"\b(?:ERROR|CRITICAL|FATAL|Traceback)\b")
_DOUBT = re.compile(r"\bWARN(?:ING)?\b")


_ACCESS = re.compile(r"\b(?:GET|POST|HEAD|PUT|DELETE|OPTIONS) /[^\s]{0,200}[^\n]{0,60}?\b[1-5]\d\d\b")
LEVELS = {"": "all lines", "doubt": "warnings and errors", "bad": "errors", "cause": "known causes"}
_SHOWN = {"doubt": ("doubt", "bad", "cause"), "bad": ("bad", "cause"), "cause": ("cause",)}


@dataclass(frozen=True, slots=True)
class LogLine:
    """kind: bad, doubt, access (a request that was answered), cause, note (of this page), or ''. rank: '' of notes."""

    number: int
    markup: Html
    text: str
    kind: str = ""
    rank: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """words: text that a line holds, whatever its case. access: also lines of requests that were answered."""

    words: str = ""
    rank: str = ""
    level: str = ""
    access: bool = False

    def lets(self, line: LogLine) -> bool:
        if line.kind == "note":
            return True
        shown = line.kind in _SHOWN.get(self.level, (line.kind,)) and (self.access or line.kind != "access")
        return shown and self.rank in ("", line.rank) and self.words.casefold() in line.text.casefold()


def filter_of(given: Mapping[str, str]) -> Filter:
    level = given.get("level", "")
    return Filter(
        given.get("words", "")[:200],
        given.get("rank", "")[:4],
        level if level in LEVELS else "",
        given.get("access", "") == "yes",
    )


class Follower:
    """The followed logs of one deployment. lines: the last ones."""

    def __init__(self, watch: DeploymentWatch) -> None:
        self._watch = watch
        self.lines: deque[LogLine] = deque(maxlen=_KEPT)
        self._last = 0
        self._changed = asyncio.Event()
        self.readers = 0
        self._task: asyncio.Task[None] | None = None

    def _put(self, *rows: LogLine) -> None:
        for row in rows:
            self._last += 1
            self.lines.append(replace(row, number=self._last, markup=without_controls(row.markup)))
        self._changed.set()
        self._changed = asyncio.Event()

    async def first(self) -> tuple[LogLine, ...]:
        """The lines so far; waits a moment for the first ones."""
        self._begin()
        if not self.lines:
            try:
                async with asyncio.timeout(2.0):
                    await self._changed.wait()
            except TimeoutError:
                return ()
        return tuple(self.lines)

    async def events(self, after: int, visitor: Callable[[], Visitor | None]) -> AsyncIterator[str]:
        """The lines after a number, as they come, until the visitor's key is gone."""
        self.readers += 1
        try:
            while (who := visitor()) and who.key.deployment in ("", self._watch.name):
                self._begin()
                changed = self._changed
                fresh = [line for line in self.lines if line.number > after]
                after = fresh[-1].number if fresh else after
                rows = json.dumps("".join(line.markup for line in fresh))
                yield f"id: {after}\nevent: lines\ndata: {rows}\n\n" if fresh else STILL_HERE
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
                    self._put(_note("the ranks were started again"))
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
        self._put(_note(said))

    async def _gathered(self, made: Services) -> None:
        """Gathers lines in batches: rules are read in a thread, so that no log holds up the pages."""
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


def fitting(lines: Sequence[LogLine]) -> tuple[LogLine, ...]:
    """The last ones, as many as a page of less than 150 kB holds."""
    weights = accumulate(len(line.markup.encode()) for line in reversed(lines))
    count = sum(1 for weight in weights if weight <= _PAGE)
    return tuple(islice(lines, len(lines) - count, None))


def _note(text: str) -> LogLine:
    return LogLine(0, html_tag("div", shortened(text), class_="line note"), text, "note")


def _rows(watching: Watching, batch: list[tuple[RankStatus, str]]) -> list[LogLine]:
    shown = ((rank, line[:_LONGEST]) for rank, line in batch if _SCRAPED not in line)
    return [row for rank, line in shown for row in _marked(watching, rank, line)]


def _marked(watching: Watching, rank: RankStatus, line: str) -> Iterator[LogLine]:
    """The line, and below it each cause that it is the first to show."""
    kind = "bad" if _BAD.search(line) else "doubt" if _DOUBT.search(line) else ""
    kind = kind or ("access" if _ACCESS.search(line) else "")
    number = str(rank.rank)
    shown = html_tag("span", number, class_="rank")
    markup = html_tag("div", shown, line, class_=f"line {kind}".strip(), data_rank=number)
    yield LogLine(0, markup, line, kind, number)
    for cause in watching.feed(name_of(rank), f"{line}\n".encode("utf-8", "replace")):
        yield _cause(cause, number)


def _cause(cause: Cause, rank: str) -> LogLine:
    fix = f" fix: {cause.fix[0]}" if cause.fix else ""
    about = f" ({cause.code}, {cause.confidence:.0%})"
    markup = html_tag("div", html_tag("b", cause.title), about, shortened(fix), class_="line cause", data_rank=rank)
    return LogLine(0, markup, f"{cause.title}{about}{fix}", "cause", rank)


def logs_page(names: tuple[str, ...], name: str, lines: Sequence[LogLine], wanted: Filter) -> Html:
    """The lines that are there and that the filter lets through; the script adds those that come."""
    links = (
        html_tag("a", one, href=f"{CONSOLE_PATH}/logs/{one}", aria_current="page" if one == name else None)
        for one in names
    )
    choice = html_tag("nav", *links, aria_label="Deployments", class_="spans") if len(names) > 1 else ""
    # Lines of requests are there for the script to show, where nothing was searched for.
    every = lines if wanted == Filter() else [line for line in lines if wanted.lets(line)]
    found = fitting(every)
    empty = html_tag("div", "no line has come yet" if not lines else "no line matches", class_="line note")
    box = html_tag(
        "div",
        *(_shown(line, wanted) for line in found),
        "" if found else empty,
        id="log",
        tabindex="0",
        role="log",
        aria_label="Log lines",
    )
    note = "The number before a line is its rank. Errors, warnings and known causes are marked."
    return join_html(
        html_tag("h1", f"Logs of {name}"), choice, html_tag("p", note, class_="soft"), _form(name, lines, wanted), box
    )


def _shown(line: LogLine, wanted: Filter) -> Html:
    return line.markup if wanted.lets(line) else Html(line.markup.replace("<div ", "<div hidden ", 1))


def _form(name: str, lines: Sequence[LogLine], wanted: Filter) -> Html:
    ranks = {"": "all ranks", **{one: f"rank {one}" for one in sorted({line.rank for line in lines} - {""})}}
    fields = [
        html_tag(
            "div",
            html_tag("label", "Search", for_="words"),
            html_tag("input", id="words", name="words", type="search", value=wanted.words, maxlength="200"),
        ),
        _select("rank", "Rank", ranks, wanted.rank),
        _select("level", "Level", LEVELS, wanted.level),
        html_tag(
            "label",
            html_tag("input", type="checkbox", name="access", value="yes", checked=wanted.access),
            " requests that were answered",
            class_="check",
        ),
        html_tag("button", "Filter", type="submit"),
        html_tag("button", "Next cause", type="button", id="next-cause", hidden=True),
        html_tag("a", "Download", href=f"{CONSOLE_PATH}/logs/{name}/download", class_="button", download=f"{name}.log"),
    ]
    return html_tag("form", *fields, class_="filters", method="get", id="log-filter")


def _select(name: str, label: str, choices: Mapping[str, str], chosen: str) -> Html:
    options = (html_tag("option", text, value=value, selected=value == chosen) for value, text in choices.items())
    return html_tag(
        "div", html_tag("label", label, for_=f"f-{name}"), html_tag("select", *options, id=f"f-{name}", name=name)
    )


def text_of(lines: Sequence[LogLine]) -> str:
    """The log as a file: each line behind its rank."""
    return "".join(f"{line.rank and f'rank {line.rank}  '}{printable(line.text)}\n" for line in lines)
