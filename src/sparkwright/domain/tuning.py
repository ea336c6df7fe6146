"""A search of settings: what can be set, what was tried and measured, and what came of it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from sparkwright.domain.values import dataclass, field


class TuneGoal(StrEnum):
    """throughput: most output tokens/s of many requests. latency: the soonest answer of one request alone.

    agents: most turns a minute of agents with growing histories.
    """

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class TuneSetting:
    """key: of the recipe (`serving.sequences`, `flags.threads`). values: the first is the recipe's own, None: unset.

    by_start: compared by the time to ready, not by answers.
    """

    name: str
    key: str
    values: tuple[Any, ...]
    what: str = ""
    by_start: bool = False


class Tried(StrEnum):
    """measured: counts. refused: by the plan, never started. not started: it did not become ready, or ended.

    excluded: a probe failed that passes with the recipe's own settings, or a node fell below its memory floor.
    """

    MEASURED = "measured"
    REFUSED = "refused"
    NOT_STARTED = "not started"
    EXCLUDED = "excluded"


Point = tuple[int, ...]  # for each setting the place of its value


@dataclass(frozen=True, slots=True)
class Trial:
    """One start with one point. rung: how often its point was measured before; START for times to ready.

    scores: one a repeat, higher is better (tokens/s, answers/s, turns/min). start, seconds: to ready, and all in all.
    run: in the store. probed: names of probes that failed; None: not asked.
    """

    point: Point
    rung: int
    state: Tried
    scores: tuple[float, ...] = ()
    detail: str = ""
    start: float = 0.0
    seconds: float = 0.0
    run: str = ""
    probed: tuple[str, ...] | None = None


START = -1


def failed(trials: Sequence[Trial]) -> set[Point]:
    return {one.point for one in trials if one.state is not Tried.MEASURED}


def scored(trials: Sequence[Trial]) -> dict[Point, list[float]]:
    """The scores of all repeats by point; a point that ever failed is left out.

    The very first trial finds out how much a repeat asks, and counts only where its point has no other.
    """
    out, found = failed(trials), dict[Point, list[float]]()
    for number, one in enumerate(trials):
        if one.point in out or one.rung < 0 or not one.scores:
            continue
        if number == one.rung == 0 and any(other.point == one.point and other.rung > 0 for other in trials):
            continue
        found.setdefault(one.point, []).extend(one.scores)
    return found


@dataclass(frozen=True, slots=True)
class Candidate:
    """point: of the space. predicted: the planner's score, 0 where it has none. refused: why the plan refuses it."""

    point: Point
    changes: Mapping[str, Any]
    predicted: float = 0.0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a value against the recipe's own, all others equal: a factor less 1, with its 95 % interval.

    trials: with that value. low, high: None where they cannot be known.
    """

    setting: str
    value: Any
    worth: float
    low: float | None
    high: float | None
    trials: int


@dataclass(frozen=True, slots=True)
class Tuned:
    """The state of a search. best: None if fewer than two settings were measured: there is no comparison.

    done: all rungs were finished. most: how many settings a whole search tries; needs: seconds that the rest would take
    at the pace so far, 0 when it is done or nothing was tried. resume: the command that goes on, '' when it is done.
    text: the recipe with the profile, '' where the recipe's own settings are the best.
    """

    id: str
    goal: TuneGoal
    recipe: str
    settings: tuple[TuneSetting, ...]
    candidates: tuple[Candidate, ...]
    trials: tuple[Trial, ...]
    space: int
    best: Point | None = None
    effects: tuple[Effect, ...] = ()
    done: bool = False
    note: str = ""
    simulated: bool = False
    profile: str = ""
    text: str = field(default="", repr=False)
    most: int = 0
    needs: float = 0.0
    resume: str = ""

    @property
    def compared(self) -> int:
        """Settings that were measured."""
        return len(scored(self.trials))
