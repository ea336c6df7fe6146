"""A level as sessions of requests: every body made before the clock starts.

- Independent requests (`Single`), each with a context of its own or one that the server has cached.
- The loop of an agent (`Agent`): the first turn sends system prompt, tools and task; every other one sends all that
  went before and a new tool result. The result comes as a user's message: a `tool` message must name a call, and the
  model of a benchmark makes none.
- Requests of a file (`Replay`): with their texts, or with texts made up to a trace's lengths and shared blocks.
"""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import takewhile
from random import Random

from sparkwright.domain.run import Session, Turn
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import (
    Agent,
    Api,
    Arrival,
    Length,
    LevelPlan,
    Pace,
    PlannedTurn,
    Replay,
    Single,
    Workload,
)
from sparkwright.loadgen.prompts import SALT, Making, PromptTexts, asking, body_ends, ending, message, written
from sparkwright.loadgen.recorded import BLOCK, Recorded
from sparkwright.loadgen.texts import FIELDS, THINGS, VERBS, sentence

WARM_TOKENS = 16  # of an answer to warm-up, which is there for what a server compiles at the first prompt
WARM_UP, NOISE = 100_000, 300_000  # numbers of sessions that only warm up, or are not counted, begin here


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


# When sessions begin


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


# Independent requests


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


_REACH = 2.5  # standard deviations to each end: 99 % lie between the ends without being cut


def sample(length: Length, dice: Random) -> int:
    """Tokens: fixed, uniform, or log-normal about the median, as prompts of many users are."""
    if length.low >= length.high:
        return length.low
    if not length.median:
        return dice.randint(length.low, length.high)
    turn = dice.gauss(0, 1) / _REACH
    end = length.high if turn > 0 else length.low
    value = length.median * math.exp(math.log(max(end, 1) / length.median) * abs(turn))
    return min(max(round(value), length.low), length.high)


# The loop of an agent


def agents(agent: Agent, making: Making) -> tuple[Session, ...]:
    """Warm-up, then agents in waves of as many as run at a time, each wave with its noise."""
    short = _Loop(replace(agent, turns=1, output=min(agent.output, WARM_TOKENS)), making)
    warm = [warming(short.session(WARM_UP + n)) for n in range(making.level.warmup)]
    return (*warm, *_waves(making.level, _Loop(agent, making)))


def warming(session: Session) -> Session:
    """One that only warms up, by its first turn."""
    return replace(session, turns=(replace(session.turns[0], warmup=True),))


def _waves(level: LevelPlan, loop: "_Loop") -> Iterator[Session]:
    wave = level.pace.concurrency or level.requests
    for number in range(level.requests):
        if number % wave == 0:
            noise = range(number // wave * loop.agent.noise, (number // wave + 1) * loop.agent.noise)
            yield from (replace(loop.session(NOISE + n), counted=False) for n in noise)
        yield loop.session(number)


@dataclass(frozen=True, slots=True)
class _Loop:
    agent: Agent
    making: Making

    def session(self, number: int) -> Session:
        turns = self.agent.planned_turns()
        made = [self._turn(number, n, turn, n + 1 == len(turns)) for n, turn in enumerate(turns)]
        return Session(number, tuple(made))

    def _turn(self, number: int, n: int, plan: PlannedTurn, last: bool) -> Turn:
        """A cold agent's salts are new in every turn, in front of tools and system prompt: nothing is known there."""
        agent, texts = self.agent, self.making.texts
        salts = self.making.dice(number, "salt", n if agent.cold else 0)
        tools, shown = self._tools(salts)
        head, tail = body_ends(self.making.workload, texts.probed, agent.output, tools)
        size = agent.system + agent.tools - shown - texts.frames.system
        system = message("system", ending(texts, size, salts, texts.closing))
        new = max(plan.new - texts.frames.turn, 1) if n else agent.first - texts.frames.user
        return Turn(
            head=f"{head}{system},",
            new=message("user", asking(texts, new, self.making.dice(number, "new", n))),
            tail=tail,
            answer=not last,
            think=agent.think if n else 0.0,
            prompt_tokens=plan.prompt,
            output_tokens=agent.output,
            cached_tokens=0 if agent.cold else plan.known,
        )

    def _tools(self, dice: Random) -> tuple[str, int]:
        """Tools as JSON text, and their tokens; the system prompt makes up for those that the server does not show."""
        texts = self.making.texts
        made = texts.frames.tools.get(self.agent.tools)
        if not made or not made.tokens:
            return "", 0
        padding = "".join(Random("padding").choices(texts.units, k=made.padding))
        return tools_text(made.count, padding, "".join(dice.choices(texts.units, k=SALT))), made.tokens


_TYPES = (
    {"type": "string"},
    {"type": "integer", "minimum": 0},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "string", "enum": ["first", "last", "all"]},
)


def tools_text(count: int, padding: str, salt: str) -> str:
    """`"tools":[...],"tool_choice":"none"` of so many functions: the same ones, but for the salt.

    salt: words at the very beginning. padding: words at the very end. With `none` the model reads them and answers in
    plain text: a call could be refused by a server without a parser for it, and would end the answer early.
    """
    dice = Random("tools")
    listed = [_function(dice, number) for number in range(count)]
    listed[0]["description"] = f"For{salt}: {listed[0]['description']}"
    listed[-1]["description"] = f"{listed[-1]['description']} See also{padding}."
    tools = [{"type": "function", "function": function} for function in listed]
    return f'"tools":{json.dumps(tools)},"tool_choice":"none"'


def _function(dice: Random, number: int) -> dict[str, object]:
    noun, other = dice.sample(THINGS, 2)
    fields = dice.sample(FIELDS, dice.randrange(2, 5))
    properties = {field: {**dice.choice(_TYPES), "description": sentence(dice)} for field in fields}
    return {
        "name": f"{dice.choice(VERBS)}_{noun}_{number}",
        "description": f"{dice.choice(VERBS).capitalize()} the {noun} of a {other}. {sentence(dice)}",
        "parameters": {"type": "object", "properties": properties, "required": fields[:1]},
    }


# Requests of a file

_OUTPUT = 128  # where neither the file nor the workload says how long an answer is


def replayed(shape: Replay, making: Making) -> tuple[Session, ...]:
    """The sessions of the file, or the level's limit of them; with the file's own times if the level is `timed`."""
    recorded = making.texts.recorded[shape.path][: shape.limit or None]
    first = min((one.at for one in recorded if one.at is not None), default=0.0)
    made = _Made(shape, making)
    found = [Session(number, (made.turn(number, one),)) for number, one in enumerate(recorded)]
    if making.level.pace.arrival is Arrival.RECORDED:
        return tuple(replace(s, at=(r.at or first) - first) for s, r in zip(found, recorded, strict=True))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Made:
    """Turns of one repeat of a replay; blocks that requests share are made once."""

    shape: Replay
    making: Making
    known: dict[int, str] = field(default_factory=dict)

    def turn(self, number: int, one: Recorded) -> Turn:
        dice, shape = self.making.lengths(number), self.shape
        output = sample(shape.output, dice) if shape.output else one.output_tokens or _OUTPUT
        # Blocks that an earlier request of this repeat has sent; the last block is never shared whole.
        known = BLOCK * len(list(takewhile(lambda block: block in self.known, one.blocks[:-1])))
        planned = self.making.turn(one.input_tokens, output, known)
        if one.input_tokens:
            return self.making.asking(planned, self._blocks(number, one))
        if one.messages:
            return self._messages(planned, json.loads(one.messages))
        return self.making.asking(planned, one.prompt)

    def _messages(self, planned: Turn, messages: list[object]) -> Turn:
        if self.making.workload.api is Api.CHAT:
            return replace(planned, new=",".join(json.dumps(one) for one in messages))
        contents = (one.get("content") for one in messages if isinstance(one, dict))
        return self.making.asking(planned, "\n".join(content for content in contents if isinstance(content, str)))

    def _blocks(self, number: int, one: Recorded) -> str:
        texts, dice = self.making.texts, self.making.dice
        for block in one.blocks[:-1]:
            if block not in self.known:
                self.known[block] = written(texts, BLOCK, dice("block", block))
        whole = "".join(self.known[block] for block in one.blocks[:-1])
        left = one.input_tokens - BLOCK * max(len(one.blocks) - 1, 0) - texts.frames.user
        return whole + asking(texts, left, dice("last", number))
