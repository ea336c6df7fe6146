"""The workload of a trial of `tune`, and the score of its measurement."""

from collections.abc import Callable, Mapping
from math import ceil
from statistics import fmean

from sparkwright.domain.run import Level, Run
from sparkwright.domain.tuning import TuneGoal
from sparkwright.domain.values import dataclass
from sparkwright.domain.workload import Agent, Length, LevelPlan, Pace, Shape, Single, Workload
from sparkwright.loadgen.samples import counted, seconds_spanned, without_errors
from sparkwright.tune.search import repeats

VERSION = 2
_DEADLINE = 900.0
_CONTEXT = 8192  # where the recipe leaves it to the model
UNITS = {TuneGoal.THROUGHPUT: "output tokens/s", TuneGoal.LATENCY: "answers/s", TuneGoal.AGENTS: "turns/min"}
USERS = {TuneGoal.THROUGHPUT: 16, TuneGoal.LATENCY: 1, TuneGoal.AGENTS: 4}
_TURNS, _ALONE = 5, 3
_SECONDS, _MOST = 2.0, 16  # a repeat of a small model's 0.2 s differs from the next one by more than settings do


@dataclass(frozen=True, slots=True)
class Short:
    """The workload of a repeat. context: of one sequence, 0: unknown. users: 0 for the goal's usual number.

    pace: score of the recipe's own settings, 0 before it is known: a repeat is to last some seconds with them.
    """

    goal: TuneGoal
    context: int
    users: int
    pace: float = 0.0

    def workload(self, rung: int, seed: int) -> Workload:
        """rung: how often the point was measured before; see search.repeats."""
        users = self.users or USERS[self.goal]
        shape = _shape(self.goal, min(self.context or _CONTEXT, 4 * _CONTEXT))
        requests = {TuneGoal.THROUGHPUT: 2 * users, TuneGoal.LATENCY: _ALONE}.get(self.goal, users)
        if self.pace > 0:
            took = requests * _each(shape, self.goal) / self.pace
            requests *= min(_MOST, max(1, ceil(_SECONDS / took)))
        level = LevelPlan(self.goal.value, shape, Pace(concurrency=users), requests, 1)
        title = f"A short bench of `tune` for {self.goal}"
        name = f"tune-{self.goal}"
        return Workload(name, title, (level,), VERSION, seed=seed, repeats=repeats(rung), deadline=_DEADLINE)


def _each(shape: Shape, goal: TuneGoal) -> float:
    """The gain in score of one request, if the repeat lasts a second."""
    if isinstance(shape, Single):
        return float(shape.output.high) if goal is TuneGoal.THROUGHPUT else 1.0
    return 60.0 * _TURNS


def _shape(goal: TuneGoal, context: int) -> Shape:
    if goal is TuneGoal.AGENTS:
        unit = min(512, context // 16)
        return Agent(_TURNS, unit, unit, unit // 2, unit // 2, min(64, unit // 4))
    prompt, output = min(1024, context // 4), min(128, context // 16)
    return Single(Length(prompt, prompt), Length(output, output))


def scores(run: Run, goal: TuneGoal) -> tuple[float, ...]:
    """One a repeat in which something was answered."""
    found = (_SCORES[goal](level) for level in run.levels if level.complete and without_errors(counted(level)))
    return tuple(one for one in found if one > 0)


def failures(run: Run) -> int:
    return sum(bool(row.error) for level in run.levels for row in counted(level))


def least_memory(run: Run) -> Mapping[str, int]:
    """Bytes available at the worst moment, by node."""
    least: dict[str, int] = {}
    for level in run.levels:
        for scrape in level.scrapes:
            for node, size in scrape.memory.items():
                least[node] = min(size, least.get(node, size))
    return least


def _rate(level: Level) -> float:
    rows = counted(level)
    took = seconds_spanned(rows)
    return sum(row.output_tokens or 0 for row in without_errors(rows)) / took if took else 0.0


def _alone(level: Level) -> float:
    ends = [row.end for row in without_errors(counted(level)) if row.end]
    return 1 / fmean(ends) if ends else 0.0


def _turns(level: Level) -> float:
    rows = counted(level)
    took = seconds_spanned(rows)
    return 60 * len(without_errors(rows)) / took if took else 0.0


_SCORES: Mapping[TuneGoal, Callable[[Level], float]] = {
    TuneGoal.THROUGHPUT: _rate,
    TuneGoal.LATENCY: _alone,
    TuneGoal.AGENTS: _turns,
}
