"""A probe is a generator that yields requests, gets their answers, and returns its judgement."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random
from typing import Any

from sparkwright.domain.evaluation import ProbeEvidence, ProbeOutcome, ProbeState
from sparkwright.domain.values import dataclass, field
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, Token, ToolCall, shortened

_SHOWN = 5  # failures of a probe that are stored with their exchange
_TIE = 1.0  # nats: where two tokens are as close as this, another batch or kernel may choose the other
_REASONING = 2048
TRIES = 3  # times that a greedy request is repeated before two answers count as different
_EARLY = 24  # characters: without log-probabilities, answers that part before this are different answers
_GONE = (0, 401, 403, 429, 502, 503, 504)


class NoAnswer(Exception):
    """The server did not answer: nothing can be judged."""


@dataclass(frozen=True, slots=True)
class ProbeInputs:
    """The server, as far as probes need it. context: most tokens of a request, 0 when unknown; longest: to be asked.

    thinking: it accepts `chat_template_kwargs`; reasons: it sends reasoning also with that off. brief: one case of
    each, short answers. filler: a text of so many tokens, other for another number. choose: members of a request that
    allow these answers only.
    """

    seed: int = 0
    context: int = 0
    longest: int = 0
    thinking: bool = False
    reasons: bool = False
    ignore_eos: bool = False
    brief: bool = False
    filler: Callable[[int, int], str] | None = None
    choose: Callable[[Sequence[str]], Mapping[str, Any]] | None = None

    def dice(self, name: str) -> Random:
        return Random(f"{self.seed}/{name}")

    def chat(self, content: str | Sequence[Mapping[str, Any]], tokens: int = 256, **more: Any) -> ProbeRequest:
        """A greedy request, with room for reasoning where that cannot be switched off."""
        return self.short(content, tokens + (_REASONING if self.reasons else 0), **more)

    def short(self, content: str | Sequence[Mapping[str, Any]], tokens: int, **more: Any) -> ProbeRequest:
        """A greedy request of at most so many tokens of any kind, with thinking off where that can be asked for."""
        messages = [{"role": "user", "content": content}] if isinstance(content, str) else list(content)
        return ProbeRequest(
            {"messages": messages, "max_tokens": tokens, "temperature": 0, **self.pinned(False), **more}
        )

    def pinned(self, thinking: bool) -> dict[str, Any]:
        """The two names that chat templates know it by (Qwen, GLM; DeepSeek)."""
        return {"chat_template_kwargs": {"enable_thinking": thinking, "thinking": thinking}} if self.thinking else {}

    def whole(self) -> dict[str, Any]:
        """Goes to the limit, where the server can be asked for that."""
        return {"ignore_eos": True} if self.ignore_eos else {}


@dataclass(slots=True)
class Tally:
    """The judgement of a probe so far. refused: the server's refusals with its message. notes: for the detail.

    unjudged: what the answers prove nothing about, and why.
    """

    cases: int = 0
    failures: list[ProbeEvidence] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def judge(
        self,
        case: str,
        ask: ProbeRequest,
        heard: ProbeAnswer,
        problem: Callable[[ProbeAnswer], str],
        strict: bool = False,
    ) -> None:
        """problem: '' for a good answer. strict: a refusal is a failure. Raises NoAnswer."""
        if heard.status in _GONE:
            raise NoAnswer(heard.trouble)
        if heard.refused and not strict:
            self.refused.append(f"{case}: {heard.trouble}")
            return
        self.found(case, heard.trouble or problem(heard), ask, heard)

    def found(self, case: str, problem: str, ask: ProbeRequest, heard: ProbeAnswer) -> None:
        self.cases += 1
        if problem:
            self.failures.append(ProbeEvidence(f"{case}: {problem}", curl_text(ask), shortened(heard.raw, 1200)))

    def outcome(self, name: str) -> ProbeOutcome:
        """The outcome without the catalog's texts."""
        notes = "; ".join([*self.notes, *(f"refused: {one}" for one in self.refused[:2])])
        if self.failures:
            first = self.failures[0].what
            detail = f"{len(self.failures)} of {self.cases}: {first}" if self.cases > 1 else first
            kept = tuple(self.failures[:_SHOWN])
            return ProbeOutcome(name, ProbeState.FAILED, detail, self.cases, len(self.failures), evidence=kept)
        if self.unjudged:
            good = f"; {self.cases} of {self.cases + len(self.unjudged)} judged and good" if self.cases else ""
            return ProbeOutcome(name, ProbeState.SKIPPED, f"cannot be judged: {self.unjudged[0]}{good}", self.cases)
        if not self.cases:
            return ProbeOutcome(
                name, ProbeState.UNSUPPORTED if self.refused else ProbeState.SKIPPED, notes or "had nothing to judge"
            )
        return ProbeOutcome(name, ProbeState.PASSED, notes, self.cases)


Steps = Generator[Sequence[ProbeRequest], Sequence[ProbeAnswer], Tally]
Probe = Callable[[ProbeInputs], Steps]


def curl_text(ask: ProbeRequest) -> str:
    """The request as `curl` would send it, shortened in its middle."""
    text = f"POST {ask.path} {json.dumps(ask.body, ensure_ascii=False)}"
    return shortened(text if len(text) < 1200 else f"{text[:700]} … {text[-450:]}", 1200)


def function(name: str, properties: Mapping[str, Any], about: str = "") -> dict[str, Any]:
    """A tool as Chat Completions has it; all properties are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": about or name, "parameters": schema}}


def call_fault(call: ToolCall, name: str, arguments: Mapping[str, Any]) -> str:
    """The fault of a call, '' if it is the expected one."""
    if call.name != name:
        return f"function {call.name!r} instead of {name!r}"
    tree = call.tree
    if not isinstance(tree, dict):
        return f"arguments are no JSON object: {shortened(call.arguments, 120)!r}"
    wrong = [key for key in {**arguments, **tree} if not same_value(tree.get(key), arguments.get(key))]
    shown = ", ".join(f"{key} is {tree.get(key)!r}, expected {arguments.get(key)!r}" for key in wrong[:2])
    return f"arguments: {shown}" if wrong else ""


def same_value(one: Any, other: Any) -> bool:
    """True for equal values of one type: 1 is not True, nor "1"."""
    return type(one) is type(other) and bool(one == other)


def both_ways(
    ask: ProbeRequest, said: Callable[[ProbeAnswer], object]
) -> Generator[Sequence[ProbeRequest], Sequence[ProbeAnswer], list[ProbeAnswer]]:
    """Whole answers, then the last stream, asked in turn until it is equal to one of them.

    Never at once: in a batch of two the second place may choose another token at a near tie, each time the same one.
    """
    wholes: list[ProbeAnswer] = []
    while True:
        wholes += yield (ask,)
        (heard,) = yield (ProbeRequest({**ask.body, "stream": True}),)
        if len(wholes) == TRIES or wholes[-1].trouble or heard.trouble or said(heard) in map(said, wholes):
            return [*wholes, heard]


def parted(one: ProbeAnswer, other: ProbeAnswer) -> tuple[int, str]:
    """(-1, '') for equal answers; else the place where they part, and why that is a fault, '' for a near tie."""
    if one.content == other.content and one.reasoning == other.reasoning:
        return -1, ""
    if one.tokens and other.tokens:
        return _parted_tokens(one.tokens, other.tokens)
    first, second = one.content or one.reasoning, other.content or other.reasoning
    at = next((n for n, pair in enumerate(zip(first, second, strict=False)) if len({*pair}) > 1), -1)
    at = min(len(first), len(second)) if at < 0 else at
    return at, f"other text from character {at} on" if at < _EARLY else ""


def _parted_tokens(one: Sequence[Token], other: Sequence[Token]) -> tuple[int, str]:
    """The place where they part, and why; if one ends there, the longer one's choice counts."""
    texts = zip((t.text for t in one), (t.text for t in other), strict=False)
    at = next((n for n, (a, b) in enumerate(texts) if a != b), min(len(one), len(other)))
    longer = one if len(one) > at else other
    top = sorted(longer[at].top, reverse=True) if len(longer) > at else []
    gap = top[0] - top[1] if len(top) > 1 else 0.0
    return at, f"other token at {at}, where the first choice led by {gap:.1f} nats" if gap > _TIE else ""
