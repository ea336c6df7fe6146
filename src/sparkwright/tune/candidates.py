"""Candidates of a search of settings: which of them the planner lets start, in the order of what it expects of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sparkwright.domain.recipe import Recipe
from sparkwright.domain.tuning import Candidate, Point, TuneGoal, TuneSetting
from sparkwright.domain.units import gib
from sparkwright.domain.verdict import Load, Variant, Verdict
from sparkwright.planner import limits
from sparkwright.planner.optimize import ANSWER, PROMPT, answers
from sparkwright.planner.remedies import SPARE, Judge

AGENTS = 4  # at once, each with a history of PROMPT tokens of which most is cached
_NOT_CACHED = PROMPT // 8  # tokens of an agent's history, such as the newest tool result


def variant(settings: Sequence[TuneSetting], point: Point) -> Variant:
    """The changes of the recipe at the point: a place in each setting's values, of which the first is as it is."""
    pairs = zip(settings, point, strict=True)
    return Variant(tuple((one.key, one.values[place]) for one, place in pairs if place))


def predicted(recipe: Recipe, judge: Judge, verdict: Verdict | None, goal: TuneGoal) -> float:
    """Tokens/s of all requests together that the planner expects under the goal's load; 0 where it cannot estimate.

    Latency is one request alone, throughput as many as the KV cache holds. Only scores of one goal can be compared.
    """
    most = limits.sequences(recipe)
    if goal is TuneGoal.LATENCY:
        return answers(judge.speed(recipe, Load(prompt=PROMPT)), 1)
    if goal is TuneGoal.AGENTS:
        busy = max(1, min(AGENTS, most))
        load = Load(depth=PROMPT, concurrency=busy, prompt=PROMPT, cached=PROMPT - _NOT_CACHED)
        return answers(judge.speed(recipe, load), busy)
    held = verdict.tokens // (PROMPT + ANSWER) if verdict and verdict.kv else most
    busy = max(1, min(most, held))
    return answers(judge.speed(recipe, Load(depth=PROMPT, concurrency=busy, prompt=PROMPT)), busy)


def unsafe(verdict: Verdict) -> str:
    """The reason not to search such a memory setting: no fit, or less left than has been seen to serve. '' if safe.

    What nobody knows is not refused: the guards on the nodes end such a start in time.
    """
    if not verdict.known:
        return ""
    if not verdict.fits:
        return f"does not fit: {gib(verdict.short)} short on {verdict.node}"
    return f"would leave {gib(verdict.room)} on {verdict.node or 'a node'}" if verdict.room < SPARE else ""


def ordered(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The recipe's own first, then by prediction, the best first; equals as they come."""
    return tuple(sorted(found, key=lambda one: (any(one.point), -one.predicted)))


def tree_of(changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Keys of a recipe as its sections: an overlay for a profile."""
    tree: dict[str, dict[str, Any]] = {}
    for key, value in changes.items():
        section, _, name = key.partition(".")
        tree.setdefault(section, {})[name] = value
    return tree
