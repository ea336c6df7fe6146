"""The progress of a benchmark: a live block on a terminal, lines elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from sparkwright.cli.columns import echo
from sparkwright.domain.run import Lag, Row
from sparkwright.domain.units import duration, three_digits
from sparkwright.domain.values import dataclass
from sparkwright.domain.workload import Agent, LevelPlan, Single
from sparkwright.report.texts import seconds

_BAR = 24
# Tokens of prompt that take a GB10 about as long as one token of output: 2,000 and 40 tokens/s.
_PREFILL = 50


class BenchProgress:
    """The progress over all levels and repeats. Work is counted in tokens: a deep level takes longer than a quick
    one."""

    def __init__(self, levels: Sequence[LevelPlan], repeats: int, simulated: bool = False) -> None:
        self.repeats = max(repeats, 1)
        self._work = sum(work(plan) for plan in levels) * self.repeats
        self.steps = len(levels) * self.repeats
        self.step = 0
        self._worked = 0.0
        self._began: float | None = None
        self.plan: LevelPlan | None = None
        self.repeat = 0
        self.simulated = simulated
        self._clear()

    def _clear(self) -> None:
        self.level_ended = 0.0
        self.first_sent, self.last_end = float("inf"), 0.0
        self.ended, self.tokens = 0, 0
        self.lag = Lag()
        self.ttft: list[float] = []
        self.errors: Counter[str] = Counter()

    def begin(self, plan: LevelPlan, repeat: int, of: int, now: float) -> None:
        """repeat: from 0. A search has levels that nobody counted: then `steps` grows."""
        self._began = now if self._began is None else self._began
        self.plan, self.repeat, self.repeats = plan, repeat, of
        self.step += 1
        if self.step > self.steps:
            self.steps = self.step
            self._work += work(plan)
        self._clear()

    def take(self, row: Row) -> None:
        self.simulated = self.simulated or row.simulated
        if row.warmup or not row.counted:
            return
        self.ended += 1
        if row.error:
            self.errors[row.kind or "error"] += 1
            return
        self.tokens += row.output_tokens or 0
        self.first_sent = min(self.first_sent, row.sent)
        self.last_end = max(self.last_end, row.sent + (row.end or 0.0))
        if row.first is not None:
            self.ttft.append(row.first)

    def end(self, now: float) -> None:
        self.level_ended = now
        self._worked += work(self.plan) if self.plan else 0.0

    @property
    def planned(self) -> int:
        return requests(self.plan) if self.plan else 0

    def rate(self) -> float | None:
        """Output tokens per second of this repeat, of requests that have ended, by the client's own clock."""
        spent = self.last_end - self.first_sent
        return self.tokens / spent if self.tokens and spent > 0 else None

    def share(self) -> float:
        """The done share of all the work."""
        running = 0.0
        if self.plan and not self.level_ended and self.planned:
            running = work(self.plan) * min(self.ended / self.planned, 1.0)
        return min((self._worked + running) / self._work, 1.0) if self._work else 0.0

    def left(self, now: float) -> float | None:
        """Seconds, None while nothing has ended and when all has."""
        share = self.share()
        return self.elapsed(now) * (1 - share) / share if 0 < share < 1 else None

    def elapsed(self, now: float) -> float:
        return 0.0 if self._began is None else now - self._began


def requests(plan: LevelPlan) -> int:
    """The number of requests in one repeat."""
    return plan.requests * (plan.shape.turns if isinstance(plan.shape, Agent) else 1)


def work(plan: LevelPlan) -> float:
    """The work of one repeat, in tokens of output."""
    shape = plan.shape
    if isinstance(shape, Single):
        each = (shape.depth + shape.prompt.high) / _PREFILL + shape.output.high
        return float(plan.requests * max(each, 1.0) / max(plan.pace.concurrency, 1) ** 0.5)
    if isinstance(shape, Agent):
        prompt = shape.system + shape.tools + shape.first + shape.turns * shape.each_turn / 2
        return requests(plan) * (prompt * (1 - (shape.cached or 0.0)) / _PREFILL + shape.output)
    return float(max(plan.requests, 1))


def block(progress: BenchProgress, now: float) -> list[str]:
    """The live block: how far, which level, what it shows, what failed."""
    if progress.plan is None:
        return ["  getting ready ..."]
    done = round(progress.share() * _BAR)
    left = progress.left(now)
    eta = f", about {duration(left)} left" if left is not None else ""
    return [
        f"  {'━' * done}{'╌' * (_BAR - done)}  {progress.share():.0%}  {duration(progress.elapsed(now))}{eta}",
        f"  {level_line(progress)}",
        f"  {summary_line(progress)}",
    ]


def level_line(progress: BenchProgress) -> str:
    """`SIMULATED  3 of 8  d4096-c4, repeat 2 of 3`."""
    mark = "SIMULATED  " if progress.simulated else ""
    name = progress.plan.name if progress.plan else ""
    repeat = f", repeat {progress.repeat + 1} of {progress.repeats}" if progress.repeats > 1 else ""
    return f"{mark}{progress.step} of {progress.steps}  {name}{repeat}"


def summary_line(progress: BenchProgress) -> str:
    """Requests, tokens/s, TTFT so far, failures by kind, and how far the client itself was behind."""
    told = [f"{progress.ended} of {progress.planned} requests" if progress.planned else f"{progress.ended} requests"]
    if (rate := progress.rate()) is not None:
        told.append(f"{three_digits(rate)} tokens/s")
    if progress.ttft:
        told.append(f"TTFT {seconds(median(progress.ttft))}")
    if progress.lag.p99:
        told.append(f"client lag {seconds(progress.lag.p99)}")
    told += [f"{kind}: {count} failed" for kind, count in progress.errors.most_common()]
    return "  ".join(told)


if TYPE_CHECKING:
    from rich.text import Text

_EVERY = 10.0


class BenchScreen:
    """Prints progress. print_line: where lines go; every: seconds between lines inside of a level, 0 for none."""

    def __init__(self, progress: BenchProgress, print_line: Callable[[str], None], every: float = 0.0) -> None:
        self._progress, self._print, self._every = progress, print_line, every
        self._printed = 0.0

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None:
        self._progress.begin(plan, repeat, of, time.monotonic())
        self._printed = time.monotonic()
        if self._every:
            self._print(level_line(self._progress))

    def row(self, row: Row) -> None:
        now = time.monotonic()
        self._progress.take(row)
        if self._every and now - self._printed >= self._every:
            self._printed = now
            self._print(f"  {summary_line(self._progress)}")

    def lag(self, lag: Lag) -> None:
        self._progress.lag = lag

    def note(self, text: str) -> None:
        self._print(text)

    def done(self) -> None:
        """One repeat is over: what it showed scrolls up."""
        now = time.monotonic()
        self._progress.end(now)
        head = "" if self._every else f"{level_line(self._progress)}\n"
        self._print(f"{head}  {summary_line(self._progress)}")


@dataclass(frozen=True, slots=True)
class LiveBlock:
    """The part of a terminal that is drawn again and again."""

    progress: BenchProgress

    def __rich__(self) -> "Text":
        from rich.text import Text

        return Text("\n".join(block(self.progress, time.monotonic())), no_wrap=True, overflow="ellipsis")


class QuietScreen(BenchScreen):
    """The screen of --json: notes only."""

    def row(self, row: Row) -> None:
        pass

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None:
        pass

    def done(self) -> None:
        pass


@contextmanager
def bench_screen(
    levels: Sequence[LevelPlan], repeats: int, quiet: bool = False, simulated: bool = False
) -> Iterator[BenchScreen]:
    """levels: those that will run, `repeats` times each. Begins to count time at the first level."""
    progress = BenchProgress(levels, repeats, simulated)
    if quiet or not sys.stderr.isatty():
        yield (QuietScreen if quiet else BenchScreen)(progress, partial(echo, err=True), _EVERY)
        return
    from rich.console import Console
    from rich.live import Live

    # click writes past rich's redirection: what scrolls up is printed by the console that draws the block.
    console = Console(stderr=True, highlight=False)
    if console.is_dumb_terminal:  # nothing can be drawn again there
        yield BenchScreen(progress, partial(echo, err=True), _EVERY)
        return
    with Live(
        console=console, refresh_per_second=4, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as live:
        live.update(LiveBlock(progress))
        yield BenchScreen(progress, lambda text: console.print(text, markup=False, soft_wrap=True))
