"""The screens of `bench` before its result: the server and the plan, then the progress.

The progress is a live block on a terminal, and lines elsewhere. The result is in bench_text.py.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from sparkwright.app.bench.target import PreparedBench
from sparkwright.cli.columns import aligned, echo_text, fold_line, simulated_mark
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Lag, Row
from sparkwright.domain.units import counted, duration, three_digits
from sparkwright.domain.values import dataclass
from sparkwright.domain.workload import Agent, Arrival, LevelPlan, Single
from sparkwright.report.texts import seconds

if TYPE_CHECKING:
    from rich.text import Text


def found_text(ready: PreparedBench) -> str:
    """The server, and how it counts."""
    probed, known = ready.probed, ready.conditions
    engine = f"{probed.engine or 'an unknown engine'} {probed.engine_version}".rstrip()
    context = f"context {probed.context:,} tokens" if probed.context else "context limit unknown"
    rows = [("model", probed.model), ("engine", f"{engine}, {context}"), ("counting", _counting(probed))]
    rows.append(("prompts", f"tokens counted by {known.tokenizer}" if ready.tokenizer.exact else known.tokenizer))
    if known.deployment:
        rows.append(("recipe", f"{known.recipe} {known.recipe_hash[:12]}"))
        rows += [("node", line) for line in known.nodes]
    lacking = [fold_line(f"  lacking: {text}", 11) for text in missing_features(ready)]
    return "\n".join([f"{simulated_mark(known.simulated)}{known.endpoint}", *aligned(rows).splitlines(), *lacking])


def missing_features(ready: PreparedBench) -> list[str]:
    """Features that the server does not have, and what each costs."""
    probed, found = ready.probed, []
    if not probed.usage:
        found.append("its streams have no `usage`: only latencies can be measured, no figure per token")
    if not ready.tokenizer.exact:
        found.append("no /tokenize: lengths of prompts are estimates; --tokenizer FILE takes a tokenizer.json")
    if not probed.metrics:
        found.append("no /metrics: nothing of queue, KV cache and prefix hits as the server sees them")
    if not probed.ignore_eos and ready.workload.ignore_eos:
        found.append("it refuses `ignore_eos`: answers may be shorter than planned")
    if ready.conditions.missing:
        found.append(f"{', '.join(ready.conditions.missing)}: without these the run will not count as valid")
    return found


def _counting(probed: Probed) -> str:
    if not probed.usage:
        return "no `usage`"
    more = ["in every chunk"] if probed.continuous else []
    more += ["cached tokens too"] if probed.cached else []
    return f"tokens from `usage`{''.join(f', {one}' for one in more)}"


def plan_text(ready: PreparedBench) -> str:
    """The levels, and what ends them."""
    workload = ready.workload
    head = f"{workload.name}@{workload.version}: {workload.title}"
    rows = [("level", "requests", "prompt", "answer", "at a time"), *(_level(plan) for plan in ready.levels)]
    tokens = f", {ready.tokens:,} tokens" if ready.tokens else ""
    each = " for each rate that is tried" if workload.search else ""
    total = f"{counted(ready.requests, 'request')} in {counted(workload.repeats, 'repeat')}{tokens}{each}"
    left_out = (fold_line(f"  left out: {text}", 12) for text in ready.left_out)
    return "\n".join([head, aligned(rows), f"  {total}; {duration(workload.deadline)} at most", *left_out])


def _level(plan: LevelPlan) -> tuple[str, ...]:
    lengths = [f"{tokens:,}" for tokens in plan.mean_tokens] if plan.mean_tokens else ["as in the file"] * 2
    return plan.name, str(plan.request_count), *lengths, "".join(_pace(plan))


def _pace(plan: LevelPlan) -> Iterator[str]:
    pace, agents = plan.pace, isinstance(plan.shape, Agent)
    if pace.arrival is Arrival.CLOSED:
        yield f"{pace.concurrency}{' agent' if agents else ''}{'s' if agents and pace.concurrency > 1 else ''}"
        return
    yield "at recorded times" if pace.arrival is Arrival.RECORDED else f"{pace.arrival} {pace.rate:g}/s"
    if pace.to_rate:
        yield f" to {pace.to_rate:g}/s"
    if pace.concurrency:
        yield f", at most {pace.concurrency}"


def plan_json(ready: PreparedBench) -> dict[str, Any]:
    """The plan of a dry run as JSON."""
    probed = ready.probed
    return {
        "endpoint": ready.conditions.endpoint,
        "simulated": ready.conditions.simulated,
        "model": probed.model,
        "engine": probed.engine,
        "engine_version": probed.engine_version,
        "context": probed.context,
        "tokenizer": ready.conditions.tokenizer,
        "lacking": missing_features(ready),
        "workload": f"{ready.workload.name}@{ready.workload.version}",
        "levels": [_level_json(plan) for plan in ready.levels],
        "left_out": ready.left_out,
        "repeats": ready.workload.repeats,
        "requests": ready.requests,
        "tokens": ready.tokens,
        "seconds_at_most": ready.workload.deadline,
    }


def _level_json(plan: LevelPlan) -> dict[str, Any]:
    prompt, output = plan.mean_tokens or (None, None)
    return {"name": plan.name, "requests": plan.request_count, "prompt": prompt, "output": output}


_BAR = 24
# Tokens of prompt that take a GB10 about as long as one token of output: 2,000 and 40 tokens/s.
_PREFILL = 50


class BenchProgress:
    """The progress over all levels and repeats. Work is counted in tokens: a deep level takes longer than a quick
    one."""

    def __init__(self, levels: Sequence[LevelPlan], repeats: int, simulated: bool = False) -> None:
        self.repeats = max(repeats, 1)
        self._work = sum(work_tokens(plan) for plan in levels) * self.repeats
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
            self._work += work_tokens(plan)
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
        self._worked += work_tokens(self.plan) if self.plan else 0.0

    @property
    def planned(self) -> int:
        return self.plan.request_count if self.plan else 0

    def rate(self) -> float | None:
        """Output tokens per second of this repeat, of requests that have ended, by the client's own clock."""
        spent = self.last_end - self.first_sent
        return self.tokens / spent if self.tokens and spent > 0 else None

    def share(self) -> float:
        """The done share of all the work."""
        running = 0.0
        if self.plan and not self.level_ended and self.planned:
            running = work_tokens(self.plan) * min(self.ended / self.planned, 1.0)
        return min((self._worked + running) / self._work, 1.0) if self._work else 0.0

    def left(self, now: float) -> float | None:
        """Seconds, None while nothing has ended and when all has."""
        share = self.share()
        return self.elapsed(now) * (1 - share) / share if 0 < share < 1 else None

    def elapsed(self, now: float) -> float:
        return 0.0 if self._began is None else now - self._began


def work_tokens(plan: LevelPlan) -> float:
    """The work of one repeat, in tokens of output."""
    shape = plan.shape
    if isinstance(shape, Single):
        each = (shape.depth + shape.prompt.high) / _PREFILL + shape.output.high
        return float(plan.requests * max(each, 1.0) / max(plan.pace.concurrency, 1) ** 0.5)
    if isinstance(shape, Agent):
        prompt = shape.system + shape.tools + shape.first + shape.turns * shape.each_turn / 2
        return plan.request_count * (prompt * (1 - (shape.cached or 0.0)) / _PREFILL + shape.output)
    return float(max(plan.requests, 1))


def live_block(progress: BenchProgress, now: float) -> list[str]:
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

        return Text("\n".join(live_block(self.progress, time.monotonic())), no_wrap=True, overflow="ellipsis")


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
        yield (QuietScreen if quiet else BenchScreen)(progress, partial(echo_text, err=True), _EVERY)
        return
    from rich.console import Console
    from rich.live import Live

    # click writes past rich's redirection: what scrolls up is printed by the console that draws the block.
    console = Console(stderr=True, highlight=False)
    if console.is_dumb_terminal:  # nothing can be drawn again there
        yield BenchScreen(progress, partial(echo_text, err=True), _EVERY)
        return
    with Live(
        console=console, refresh_per_second=4, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as live:
        live.update(LiveBlock(progress))
        yield BenchScreen(progress, lambda text: console.print(text, markup=False, soft_wrap=True))
