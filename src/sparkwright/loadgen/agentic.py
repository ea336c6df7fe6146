"""The loop of an agent: what it knows grows with every turn, by the model's own answer and by what a tool returned.

The first turn sends system prompt, tools and task; every other one sends all that went before and a new tool result.
The result comes as a user's message: a `tool` message must name a call, and the model of a benchmark makes none.
"""

import json
from collections.abc import Iterator
from random import Random

from sparkwright.domain.run import Session, Turn
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.workload import Agent, LevelPlan
from sparkwright.loadgen import texts
from sparkwright.loadgen.prompts import SALT, Making, asking, body_ends, ending, message

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
    noun, other = dice.sample(texts.THINGS, 2)
    fields = dice.sample(texts.FIELDS, dice.randrange(2, 5))
    properties = {field: {**dice.choice(_TYPES), "description": texts.sentence(dice)} for field in fields}
    return {
        "name": f"{dice.choice(texts.VERBS)}_{noun}_{number}",
        "description": f"{dice.choice(texts.VERBS).capitalize()} the {noun} of a {other}. {texts.sentence(dice)}",
        "parameters": {"type": "object", "properties": properties, "required": fields[:1]},
    }


WARM_TOKENS = 16  # of an answer to warm-up, which is there for what a server compiles at the first prompt
WARM_UP, NOISE = 100_000, 300_000  # numbers of sessions that only warm up, or are not counted, begin here


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """One turn in tokens: its whole prompt, what of it was sent or answered before, what is new (all with frames)."""

    prompt: int
    known: int
    new: int


def planned(agent: Agent) -> tuple[PlannedTurn, ...]:
    """The planned turns. With `cached`, new text is as long as makes (prompt + answer before) that share of the
    prompt."""
    prompt = agent.system + agent.tools + agent.first
    turns = [PlannedTurn(prompt, 0, prompt)]
    for _ in range(agent.turns - 1):
        known = prompt + agent.output
        prompt = round(known / agent.cached) if agent.cached else known + agent.each_turn
        turns.append(PlannedTurn(prompt, known, prompt - known))
    return tuple(turns)


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
        turns = planned(self.agent)
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
