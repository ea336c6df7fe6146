"""Progress of a use case: a live block on a terminal, plain lines elsewhere. Always on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from sparkwright.cli.columns import echo_text
from sparkwright.domain.deployment import Phase
from sparkwright.domain.printable import printable
from sparkwright.domain.progress import Happening, Notice, Progress, RankPhase, StepDone, StepStarted
from sparkwright.domain.units import duration
from sparkwright.ports import Sink

if TYPE_CHECKING:
    from rich.text import Text

_EVERY = 2.0


class Quiet:
    """The screen of --json: only warnings are worth stderr."""

    def report(self, happening: Happening) -> None:
        if isinstance(happening, Notice) and happening.warning:
            echo_text(f"warning: {happening.text}", err=True)


_to_stderr = partial(echo_text, err=True)


class PlainProgress:
    """One line for each thing that begins or ends; repeated progress at most every two seconds."""

    def __init__(self, say: Callable[[str], None] = _to_stderr) -> None:
        self._say = say
        self._began = time.monotonic()
        self._phase: dict[int, Phase] = {}
        self._told = 0.0

    def report(self, happening: Happening) -> None:
        if text := self._text(happening):
            self._say(f"{time.monotonic() - self._began:7.1f} s  {text}")

    def _text(self, happening: Happening) -> str:
        match happening:
            case StepStarted(step, detail, _):
                return f"{step}: {detail}" if detail else f"{step} ..."
            case StepDone(step, seconds, detail):
                return f"{step}: done in {duration(seconds)}{', ' + detail if detail else ''}"
            case Notice(text, warning):
                return f"warning: {text}" if warning else text
            case RankPhase():
                return self._rank(happening)
            case Progress():
                return f"{happening.node}: {progress_text(happening)}" if self._due() else ""

    def _rank(self, told: RankPhase) -> str:
        entered = self._phase.get(told.rank) is not told.phase
        self._phase[told.rank] = told.phase
        return rank_text(told) if entered or (told.done is not None and self._due()) else ""

    def _due(self) -> bool:
        now = time.monotonic()
        due = now - self._told >= _EVERY
        self._told = now if due else self._told
        return due


class LiveProgress:
    """The screen of a terminal: finished steps scroll up, running ones are below with their bar."""

    def __init__(self, lines: PlainProgress) -> None:
        self._lines = lines
        self._ranks: dict[int, tuple[RankPhase, float]] = {}
        self._copies: dict[str, Progress] = {}

    def report(self, happening: Happening) -> None:
        if isinstance(happening, RankPhase):
            old = self._ranks.get(happening.rank)
            same = old is not None and old[0].phase is happening.phase
            self._ranks[happening.rank] = (happening, old[1] if old and same else time.monotonic())
        elif isinstance(happening, Progress):
            self._copies[happening.node + happening.text.split(" at ")[0]] = happening
        else:
            if isinstance(happening, StepDone):
                self._copies.clear()
            self._lines.report(happening)

    def __rich__(self) -> "Text":
        from rich.text import Text

        now = time.monotonic()
        shown = [self._ranks[rank] for rank in sorted(self._ranks)]
        lines = []
        for rank, since in shown:
            usual = f", usually {duration(rank.usual)}" if rank.usual else ""
            lines.append(f"  {rank_text(rank)}  [{duration(now - since)}{usual}]")
        lines += [f"  {copy.node}: {progress_text(copy)}" for copy in self._copies.values()]
        return Text(printable("\n".join(lines)), no_wrap=True, overflow="ellipsis")


def rank_text(told: RankPhase) -> str:
    """`rank 0 spark-1  load      12.0 of 74.1 GiB  loading shards`."""
    of = f" of {told.total:g}" if told.total is not None else ""
    amount = f"{told.done:g}{of} {told.unit}  " if told.done is not None else ""
    return f"rank {told.rank} {told.node}  {told.phase:<10} {amount}{told.text}".rstrip()


def progress_text(told: Progress) -> str:
    if told.done is None:
        return told.text
    if not told.total:
        return f"{told.done:.1f} {told.unit}  {told.text}"
    part = min(told.done / told.total, 1.0)
    return f"{'#' * int(part * 20):<20} {told.done:.1f} of {told.total:.1f} {told.unit}  {told.text}"


@contextmanager
def console_sink(quiet: bool) -> Iterator[Sink]:
    if quiet:
        yield Quiet()
    elif not sys.stderr.isatty():
        yield PlainProgress()
    else:
        from rich.console import Console
        from rich.live import Live as RichLive

        # click writes past rich's redirection, and that would send stdout to stderr: what scrolls up is printed by the
        # console that draws the block, which knows where its cursor is.
        console = Console(stderr=True, highlight=False)
        with RichLive(
            console=console, refresh_per_second=4, transient=True, redirect_stdout=False, redirect_stderr=False
        ) as live:
            sink = LiveProgress(
                PlainProgress(lambda text: console.print(printable(text), markup=False, soft_wrap=True))
            )
            live.update(sink)
            yield sink
