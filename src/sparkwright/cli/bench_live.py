"""A benchmark while it runs: a live block on a terminal, a line for each level elsewhere. Always on stderr.

Rows come from the client's own process when their requests have ended: nothing here stands in the way of its clock.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparkwright.cli.bench_progress import Progress, block, level_line, summary_line
from sparkwright.cli.columns import say
from sparkwright.domain.run import Lag, Row
from sparkwright.domain.workload import LevelPlan

if TYPE_CHECKING:
    from rich.text import Text

_EVERY = 10.0


class Screen:
    """What `app.bench` tells. say: where lines go; told_every: seconds between lines inside of a level, 0 for none."""

    def __init__(self, progress: Progress, say: Callable[[str], None], told_every: float = 0.0) -> None:
        self._progress, self._say, self._every = progress, say, told_every
        self._told = 0.0

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None:
        self._progress.begin(plan, repeat, of, time.monotonic())
        self._told = time.monotonic()
        if self._every:
            self._say(level_line(self._progress))

    def row(self, row: Row) -> None:
        now = time.monotonic()
        self._progress.take(row)
        if self._every and now - self._told >= self._every:
            self._told = now
            self._say(f"  {summary_line(self._progress)}")

    def lag(self, lag: Lag) -> None:
        self._progress.lag = lag

    def say(self, text: str) -> None:
        self._say(text)

    def done(self) -> None:
        """One repeat is over: what it showed scrolls up."""
        now = time.monotonic()
        self._progress.end(now)
        head = "" if self._every else f"{level_line(self._progress)}\n"
        self._say(f"{head}  {summary_line(self._progress)}")


class Block:
    """The part of a terminal that is drawn again and again."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __rich__(self) -> "Text":
        from rich.text import Text

        return Text("\n".join(block(self._progress, time.monotonic())), no_wrap=True, overflow="ellipsis")


class Quiet:
    """With --json: notes only."""

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None:
        pass

    def row(self, row: Row) -> None:
        pass

    def lag(self, lag: Lag) -> None:
        pass

    def say(self, text: str) -> None:
        say(text, err=True)

    def done(self) -> None:
        pass


@contextmanager
def bench_screen(
    levels: Sequence[LevelPlan], repeats: int, quiet: bool = False, simulated: bool = False
) -> Iterator[Screen | Quiet]:
    """levels: those that will run, `repeats` times each. Begins to count time at the first level."""
    progress = Progress(levels, repeats, simulated)
    if quiet:
        yield Quiet()
    elif not sys.stderr.isatty():
        yield Screen(progress, lambda text: say(text, err=True), _EVERY)
    else:
        from rich.console import Console
        from rich.live import Live

        # click writes past rich's redirection: what scrolls up is printed by the console that draws the block.
        console = Console(stderr=True, highlight=False)
        if console.is_dumb_terminal:  # nothing can be drawn again there
            yield Screen(progress, lambda text: say(text, err=True), _EVERY)
            return
        with Live(
            console=console, refresh_per_second=4, transient=True, redirect_stdout=False, redirect_stderr=False
        ) as live:
            live.update(Block(progress))
            yield Screen(progress, lambda text: console.print(text, markup=False, soft_wrap=True))
