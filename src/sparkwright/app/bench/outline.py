"""What a run will do before it does it: levels that fit, requests, tokens, and for how long at most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sparkwright.domain.errors import UsageError
from sparkwright.domain.probed import Probed
from sparkwright.domain.workload import Agent, Length, LevelPlan, Replay, Shape, Workload
from sparkwright.loadgen.agentic import planned
from sparkwright.loadgen.profiles import fits, largest


@dataclass(frozen=True, slots=True)
class LevelOutline:
    """Of one repeat, without warm-up. Tokens are means; None where a file decides."""

    plan: LevelPlan
    requests: int
    prompt_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Outline:
    """left_out: a sentence for each level that does not fit. seconds: after that it ends, finished or not."""

    levels: tuple[LevelOutline, ...]
    left_out: tuple[str, ...]
    repeats: int
    seconds: float

    @property
    def requests(self) -> int:
        return self.repeats * sum(level.requests for level in self.levels)

    @property
    def tokens(self) -> int:
        """Prompt and output, of those that are known beforehand."""
        both = (level.requests * ((level.prompt_tokens or 0) + (level.output_tokens or 0)) for level in self.levels)
        return self.repeats * sum(both)


def outline(workload: Workload, probed: Probed) -> Outline:
    """Raises UsageError when no level fits the server's context."""
    fitting = [plan for plan in workload.levels if fits(plan, probed.context)]
    left_out = tuple(_too_long(plan, probed.context) for plan in workload.levels if plan not in fitting)
    if not fitting:
        raise UsageError(
            f"profile {workload.name}: no level fits {probed.model}: {'; '.join(left_out)}",
            "choose a profile with shorter prompts, or start the engine with a larger context",
        )
    return Outline(tuple(_level(plan) for plan in fitting), left_out, workload.repeats, workload.deadline)


def adjusted(workload: Workload, repeats: int | None, seed: int | None, seconds: float | None) -> Workload:
    """With the command line's values; None keeps the profile's."""
    changed = replace(workload, repeats=repeats or workload.repeats, deadline=seconds or workload.deadline)
    return changed if seed is None else replace(changed, seed=seed)


def _too_long(plan: LevelPlan, context: int) -> str:
    return f"{plan.name} needs {largest(plan):,} tokens of context, and the server takes {context:,}"


def _level(plan: LevelPlan) -> LevelOutline:
    turns = list(_turns(plan.shape, plan.requests))
    if not turns:
        return LevelOutline(plan, plan.requests, None, None)
    prompts, outputs = sum(turn[0] for turn in turns), sum(turn[1] for turn in turns)
    agents = plan.requests if isinstance(plan.shape, Agent) else 1
    return LevelOutline(plan, len(turns) * agents, prompts // len(turns), outputs // len(turns))


def _turns(shape: Shape, requests: int) -> Iterator[tuple[int, int]]:
    """(prompt, output) tokens of each request: of one agent, or of all independent ones; none of a file."""
    match shape:
        case Agent():
            for turn in planned(shape):
                yield turn.prompt, shape.output
        case Replay():
            return
        case _:
            for _ in range(requests):
                yield shape.depth + mean(shape.prompt), mean(shape.output)


def mean(length: Length) -> int:
    return length.median or (length.low + length.high) // 2


def steps(workload: Workload, levels: Sequence[LevelPlan]) -> Iterator[tuple[int, LevelPlan]]:
    """(repeat, level): all levels once, then again, so that a slow drift shows as spread and not as a difference."""
    for repeat in range(workload.repeats):
        for plan in levels:
            yield repeat, plan
