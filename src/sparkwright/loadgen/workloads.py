"""A level as requests: every body made before the clock starts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from sparkwright.domain.run import Session
from sparkwright.domain.workload import Agent, Arrival, Length, LevelPlan, Pace, Replay, Single, Workload
from sparkwright.loadgen.agentic import WARM_TOKENS, WARM_UP, agents, warming
from sparkwright.loadgen.prompts import Making, PromptTexts, asking, written
from sparkwright.loadgen.replay import replayed, sample


def starts(pace: Pace, count: int, seed: str | int = 0) -> tuple[float, ...] | None:
    """`count` rising times, the first at 0; None in a closed loop, where a request begins when one ends."""
    dice = Random(f"pace/{seed}")
    if pace.arrival is Arrival.CLOSED:
        return None
    if pace.rate <= 0:
        raise ValueError(f"an open loop needs a rate above 0, found {pace.rate:g}")
    if pace.arrival is Arrival.POISSON:
        # Gaps are exponential and independent: users who do not know of each other.
        at, found = 0.0, []
        for _ in range(count):
            found.append(at)
            at += dice.expovariate(pace.rate)
        return tuple(found)
    if pace.arrival is Arrival.BURSTS:
        burst = max(pace.burst, 1)
        # `burst` at the same moment, then nothing until the mean rate is kept.
        return tuple((n // burst) * burst / pace.rate for n in range(count))
    if pace.arrival is Arrival.RAMP:
        return _ramp(pace.rate, pace.to_rate or pace.rate, count)
    return tuple(n / pace.rate for n in range(count))


def _ramp(first: float, last: float, count: int) -> tuple[float, ...]:
    """The rate goes from `first` to `last` in a straight line over time.

    By then count - 1 have begun after the first one: the line's area, (first + last) / 2 * whole. The n-th begins
    where the area up to it is n: first * t + (last - first) / (2 * whole) * t^2 = n, the root that is positive.
    """
    whole = 2 * max(count - 1, 1) / (first + last)
    bend = (last - first) / whole
    return tuple(2 * n / (first + math.sqrt(first * first + 2 * bend * n)) if n else 0.0 for n in range(count))


def sessions(level: LevelPlan, workload: Workload, repeat: int, texts: PromptTexts) -> tuple[Session, ...]:
    """All of one repeat of a level: first what only warms up (a field of its turns), then what is measured."""
    making = Making(workload, level, repeat, texts)
    if isinstance(level.shape, Replay):
        plain = replayed(level.shape, making)
    elif isinstance(level.shape, Agent):
        plain = agents(level.shape, making)
    else:
        plain = _single(level.shape, making)
    if level.pace.arrival is Arrival.RECORDED:
        return plain
    return with_times(level, plain, f"{workload.seed}/{level.name}/{repeat}")


def split_warmup(found: Sequence[Session]) -> tuple[tuple[Session, ...], tuple[Session, ...]]:
    """Splits the sessions into (warm-up, measured)."""
    before = tuple(one for one in found if one.turns[0].warmup)
    return before, tuple(one for one in found if not one.turns[0].warmup)


def with_times(level: LevelPlan, found: tuple[Session, ...], seed: str) -> tuple[Session, ...]:
    """The sessions with times: counted ones get the level's pace; noise begins with the first of them."""
    counted = [one for one in found if one.counted and not one.turns[0].warmup]
    at = starts(level.pace, len(counted), seed)
    if at is None:
        return found
    times = {one.number: time for one, time in zip(counted, at, strict=True)}
    return tuple(one if one.turns[0].warmup else replace(one, at=times.get(one.number, 0.0)) for one in found)


def job_pace(level: LevelPlan) -> Pace:
    """The client's pace at a time: noise agents run next to the counted ones."""
    if isinstance(level.shape, Agent) and level.pace.arrival is Arrival.CLOSED:
        return replace(level.pace, concurrency=level.pace.concurrency + level.shape.noise)
    return level.pace


def _single(shape: Single, making: Making) -> tuple[Session, ...]:
    level, texts = making.level, making.texts
    short = replace(shape, output=Length(WARM_TOKENS, WARM_TOKENS)) if shape.output.high > WARM_TOKENS else shape
    warm = [warming(_one(WARM_UP + n, short, making, "")) for n in range(level.warmup)]
    contexts, primed = list[str](), list[Session]()
    if shape.warm and shape.depth:
        # One for each that asks at a time: each comes back to its own.
        prime = making.turn(shape.depth + texts.frames.user, 1, warmup=True)
        for n in range(min(level.pace.concurrency or 8, level.requests)):
            contexts.append(written(texts, shape.depth, making.dice("context", n), shape.text))
            primed.append(Session(2 * WARM_UP + n, (making.asking(prime, contexts[n].rstrip("\n")),)))
    measured = [_one(n, shape, making, contexts[n % len(contexts)] if contexts else "") for n in range(level.requests)]
    return (*warm, *primed, *measured)


def _one(number: int, shape: Single, making: Making, context: str) -> Session:
    texts, lengths = making.texts, making.lengths(number)
    prompt, output = sample(shape.prompt, lengths), sample(shape.output, lengths)
    cached = shape.depth if context else 0
    asked = asking(texts, shape.depth - cached + prompt - texts.frames.user, making.dice(number), shape.text)
    return Session(number, (making.asking(making.turn(shape.depth + prompt, output, cached), context + asked),))
