"""Probes of text: following, streams, thinking, structured output, stop strings, log-probabilities, usage."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from sparkwright.evals.heard import Ask, Heard, shortened
from sparkwright.evals.probe import Given, Steps, Tally
from sparkwright.evals.schema import problems
from sparkwright.evals.tools import TRIES
from sparkwright.loadgen.texts import COMMON, KINDS, PLACES

_TAGS = ("<think>", "</think>", "<|channel|>", "◁think▷", "[THINK]")
_STORY = "Write about {place} and {kind} things, in three sentences."
_LENGTH = 24
_UNLIKELY = 0.2


def repeat(word: str) -> str:
    return f"Reply with exactly this and nothing else: {word}"


def follows(given: Given) -> Steps:
    """The simplest instruction: where this fails, nothing that needs a working model can be judged."""
    tally, dice = Tally(), given.dice("follows")
    for word in dice.sample([word for word in COMMON if len(word) > 3], 1 if given.brief else 3):
        ask = given.chat(repeat(word), 64)
        (heard,) = yield (ask,)
        tally.judge(word, ask, heard, lambda h, word=word: _repeats(h, word), strict=True)  # type: ignore[misc]
    return tally


def _repeats(heard: Heard, word: str) -> str:
    if word.lower() in heard.content.lower():
        return ""
    where = "" if heard.content.strip() else ", in reasoning only" if heard.reasoning else ", empty"
    return f"expected {word!r}, found {shortened(heard.content or heard.reasoning, 120)!r}{where}"


def thinking(given: Given) -> Steps:
    """On and off, where that can be asked for: reasoning in its own field, and an answer after it."""
    tally, dice = Tally(), given.dice("thinking")
    cases = {"thinking on": True, "thinking off": False} if given.thinking else {"as served": False}
    seen = 0
    for case, on in cases.items():
        word = dice.choice(PLACES)
        ask = given.chat(repeat(word), 64)
        ask = Ask({**ask.body, "max_tokens": 512 if given.brief else 2048, **given.pinned(on)})
        (heard,) = yield (ask,)
        if given.brief and heard.finish == "length" and not heard.content:
            tally.notes.append(f"{case}: it was still thinking")
            continue
        tally.judge(case, ask, heard, _split, strict=True)
        seen += bool(heard.reasoning)
    tally.notes += [] if seen else ["no reasoning seen: the model does not think, or it needs a reasoning parser"]
    return tally


def _split(heard: Heard) -> str:
    if found := next((tag for tag in _TAGS if tag in heard.content), ""):
        return f"{found} is in content: {shortened(heard.content, 160)!r}"
    if heard.content.strip():
        return ""
    if heard.finish == "length":
        return f"max_tokens ended within the reasoning: {shortened(heard.reasoning, 120)!r}"
    return f"content is empty, reasoning has {len(heard.reasoning)} characters: the answer is inside it"


def stream(given: Given) -> Steps:
    """As with tools: two requests may differ by a near tie, but one pair of some tries is equal."""
    tally, dice = Tally(), given.dice("stream")
    hard = "naïve Ωmega 漢字 🙂 שלום"
    prompts = {"prose": _STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS)), "scripts": repeat(hard)}
    for case, prompt in prompts.items():
        ask = given.chat(prompt, 64)
        streamed = Ask({**ask.body, "stream": True})
        seen: list[str] = []
        heard = Heard()
        for _ in range(TRIES):
            whole, heard = yield (ask, streamed)
            seen.append(whole.content + whole.reasoning)
            if heard.content + heard.reasoning in seen:
                break
        tally.judge(case, streamed, heard, lambda h, seen=seen: _joined(h, seen))  # type: ignore[misc]
    return tally


def _joined(heard: Heard, wholes: Sequence[str]) -> str:
    joined, whole = heard.content + heard.reasoning, wholes[-1]
    if joined in wholes:
        return ""
    at = next((n for n, (a, b) in enumerate(zip(joined, whole, strict=False)) if a != b), min(len(joined), len(whole)))
    return f"joined stream differs from character {at} on: {joined[at : at + 40]!r}, whole: {whole[at : at + 40]!r}"


_SCHEMA = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "enum": ["red", "green", "blue"]},
        "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m", "l"]}, "minItems": 2, "maxItems": 3},
        "paint": {"type": "object", "properties": {"dry": {"type": "boolean"}}, "required": ["dry"]},
    },
    "required": ["color", "sizes", "paint"],
    "additionalProperties": False,
}


def schema(given: Given) -> Steps:
    tally = Tally()
    form = {"type": "json_schema", "json_schema": {"name": "shirt", "strict": True, "schema": _SCHEMA}}
    for case, streamed in (("whole", {}), ("streamed", {"stream": True})):
        ask = given.chat("Describe a shirt as JSON.", 512, response_format=form, **streamed)
        (heard,) = yield (ask,)
        tally.judge(case, ask, heard, _fits)
    return tally


def _fits(heard: Heard) -> str:
    try:
        tree = json.loads(heard.content)
    except (ValueError, RecursionError):
        why = ", cut at max_tokens" if heard.finish == "length" else ""
        return f"no JSON{why}: {shortened(heard.content, 160)!r}"
    return next(problems(tree, _SCHEMA), "")


def choices(given: Given) -> Steps:
    """A grammar that allows a few answers only, of which none is what the text asks for."""
    tally = Tally()
    if given.choose is None:
        tally.refused.append("no form of grammar is known for this engine")
        return tally
    words = ("amber", "cobalt", "olive")
    ask = given.chat("What is 2 + 2?", 32, **given.choose(words))
    (heard,) = yield (ask,)
    tally.judge("3 words", ask, heard, lambda h: _allowed(h, words))
    return tally


def _allowed(heard: Heard, words: Sequence[str]) -> str:
    return "" if heard.content.strip() in words else f"expected one of {words}, found {shortened(heard.content, 80)!r}"


def stop(given: Given) -> Steps:
    """A stop string taken from the server's own greedy answer."""
    tally, dice = Tally(), given.dice("stop")
    ask = given.chat(_STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS)), 96, **given.whole())
    (heard,) = yield (ask,)
    text = heard.content
    places = (text[at : at + 4] for at in range(len(text) // 3, len(text) - 4))
    word = next((part for part in places if part.isprintable() and "\ufffd" not in part), "")
    if heard.trouble or not word:
        tally.judge("without a stop string", ask, heard, lambda h: f"no stop string in {shortened(h.content, 80)!r}")
        return tally
    for case, streamed in (("whole", {}), ("streamed", {"stream": True})):
        stopped = Ask({**ask.body, "stop": [word], **streamed})
        (heard,) = yield (stopped,)
        tally.judge(case, stopped, heard, lambda h: _stopped(h, word, text))
    return tally


def _stopped(heard: Heard, word: str, text: str) -> str:
    if word in heard.content:
        return f"the stop string {word!r} is in the answer: {shortened(heard.content, 120)!r}"
    expected = text[: text.index(word)]
    if heard.content == expected and heard.finish != "stop":
        return f"finish_reason is {heard.finish!r}, expected 'stop'"
    cut = expected.startswith(heard.content) and len(heard.content) < len(expected)
    return f"the answer ends {len(expected) - len(heard.content)} characters before the stop string" if cut else ""


def logprobs(given: Given) -> Steps:
    tally, dice = Tally(), given.dice("logprobs")
    prompt = _STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS))
    for case, streamed in (("whole", {}), ("streamed", {"stream": True, "stream_options": {"include_usage": True}})):
        ask = given.short(prompt, _LENGTH, logprobs=True, top_logprobs=5, **streamed)
        (heard,) = yield (ask,)
        if not heard.trouble and not heard.tokens:
            tally.refused.append(f"{case}: accepted, and none sent")
            continue
        tally.judge(case, ask, heard, _consistent)
    return tally


def _consistent(heard: Heard) -> str:
    count, output = len(heard.tokens), heard.output_tokens
    if output and abs(count - output) > (heard.finish == "stop"):
        odd = "" if heard.content.isascii() else "; tokens that are parts of a character may be missing"
        return f"{count} tokens with log-probabilities, usage counts {output}{odd}"
    for place, token in enumerate(heard.tokens):
        if not -1e9 < token.logprob <= 1e-4:
            return f"token {place}: log-probability {token.logprob}"
    others = [token for token in heard.tokens if token.top and token.logprob < max(token.top) - 0.01]
    # A repetition penalty, which models set for themselves, chooses another token now and then.
    if len(others) > _UNLIKELY * count:
        lead = max(others[0].top) - others[0].logprob
        return f"{len(others)} of {count} greedy tokens were not the most likely, the first by {lead:.2f} nats"
    joined = "".join(token.text for token in heard.tokens)
    plain = joined.isascii() and not heard.reasoning
    return f"tokens do not join to the text: {shortened(joined, 60)!r}" if plain and heard.content not in joined else ""


def usage(given: Given) -> Steps:
    tally, dice = Tally(), given.dice("usage")
    prompt = _STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS))
    whole = given.short(prompt, _LENGTH)
    streamed = Ask({**whole.body, "stream": True, "stream_options": {"include_usage": True}})
    longer = given.short(f"{prompt} {'word ' * 40}", _LENGTH)
    first, second, third = yield (whole, streamed, longer)
    tally.judge("whole", whole, first, _adds_up)
    tally.judge("streamed", streamed, second, _adds_up)
    if not (first.trouble or second.trouble or third.trouble):
        tally.found("both", _differ(first, second), streamed, second)
        grown = third.prompt_tokens - first.prompt_tokens
        wrong = "" if 20 <= grown <= 300 else f"40 more words are {grown} more prompt tokens"
        tally.found("longer prompt", wrong, longer, third)
    return tally


def _adds_up(heard: Heard) -> str:
    prompt, output, total = heard.prompt_tokens, heard.output_tokens, heard.usage.get("total_tokens", 0)
    if not prompt or not output:
        return f"usage counts {prompt} prompt and {output} completion tokens"
    return "" if total == prompt + output else f"{prompt} + {output} tokens are {total} in total"


def _differ(one: Heard, other: Heard) -> str:
    first, second = one.prompt_tokens, other.prompt_tokens
    return "" if first == second else f"one prompt is {first} tokens, streamed {second}"


def length(given: Given) -> Steps:
    """Exactly max_tokens where the end can be ignored, never more elsewhere."""
    tally = Tally()
    for tokens in (17,) if given.brief else (1, 17, 64):
        ask = given.short("Count upwards from one, spelled out.", tokens, **given.whole())
        (heard,) = yield (ask,)
        judged: Callable[[Heard], str] = lambda h, tokens=tokens: _long(h, tokens, given.ignore_eos)  # type: ignore[misc] # noqa: E731
        tally.judge(f"{tokens} tokens", ask, heard, judged, strict=True)
    return tally


def _long(heard: Heard, tokens: int, exact: bool) -> str:
    found: Any = heard.output_tokens
    if found > tokens or (exact and found != tokens):
        return f"max_tokens {tokens}, usage counts {found}"
    return f"finish_reason is {heard.finish!r}, expected 'length'" if exact and heard.finish != "length" else ""
