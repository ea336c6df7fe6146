"""Probes of text: following, streams, thinking, structured output, stop strings, log-probabilities, usage."""

import re
from collections.abc import Callable, Generator, Sequence
from typing import Any

from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, shortened
from sparkwright.evals.probe import TRIES, ProbeInputs, Steps, Tally, both_ways
from sparkwright.loadgen.texts import COMMON, KINDS, PLACES

_TAGS = ("<think>", "</think>", "<|channel|>", "◁think▷", "[THINK]")
_STORY = "Write about {place} and {kind} things, in three sentences."
_LENGTH = 24
_UNLIKELY = 0.2
_SPECIAL = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{1,40}\]")  # <|im_end|>, </s>, <think>, [EOS]
_PART, _PER_PART = "\ufffd", 4  # what a part of a character is shown as; a character has at most 4 bytes


def repeat(word: str) -> str:
    return f"Reply with exactly this and nothing else: {word}"


def follows(given: ProbeInputs) -> Steps:
    """The simplest instruction: where this fails, nothing that needs a working model can be judged."""
    tally, dice = Tally(), given.dice("follows")
    for word in dice.sample([word for word in COMMON if len(word) > 3], 1 if given.brief else 3):
        ask = given.chat(repeat(word), 64)
        (heard,) = yield (ask,)
        tally.judge(word, ask, heard, lambda h, word=word: _repeats(h, word), strict=True)  # type: ignore[misc]
    return tally


def _repeats(heard: ProbeAnswer, word: str) -> str:
    if word.lower() in heard.content.lower():
        return ""
    where = "" if heard.content.strip() else ", in reasoning only" if heard.reasoning else ", empty"
    return f"expected {word!r}, found {shortened(heard.content or heard.reasoning, 120)!r}{where}"


def thinking(given: ProbeInputs) -> Steps:
    """Thinking on and off, if the server allows it: reasoning in its own field, and an answer after it."""
    tally, dice = Tally(), given.dice("thinking")
    cases = {"thinking on": True, "thinking off": False} if given.thinking else {"as served": False}
    seen = 0
    for case, on in cases.items():
        word = dice.choice(PLACES)
        ask = given.chat(repeat(word), 64)
        ask = ProbeRequest({**ask.body, "max_tokens": 512 if given.brief else 2048, **given.pinned(on)})
        (heard,) = yield (ask,)
        if given.brief and heard.finish == "length" and not heard.content:
            tally.notes.append(f"{case}: it was still thinking")
            continue
        tally.judge(case, ask, heard, _split, strict=True)
        seen += bool(heard.reasoning)
    if not seen and not tally.failures:
        why = "not applicable, no reasoning seen: the model does not think, or needs a reasoning parser"
        tally.unjudged.append(why)
    return tally


def _split(heard: ProbeAnswer) -> str:
    if found := next((tag for tag in _TAGS if tag in heard.content), ""):
        return f"{found} is in content: {shortened(heard.content, 160)!r}"
    if heard.content.strip():
        return ""
    if heard.finish == "length":
        return f"max_tokens ended within the reasoning: {shortened(heard.reasoning, 120)!r}"
    return f"content is empty, reasoning has {len(heard.reasoning)} characters: the answer is inside it"


def stream(given: ProbeInputs) -> Steps:
    """A server may answer one request in two ways at a near tie: first whether it repeats itself, then its stream."""
    tally, dice = Tally(), given.dice("stream")
    hard = "naïve Ωmega 漢字 🙂 שלום"
    prompts = {"prose": _STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS)), "scripts": repeat(hard)}
    for case, prompt in prompts.items():
        streamed = ProbeRequest({**(ask := given.chat(prompt, 64)).body, "stream": True})
        *wholes, heard = yield from both_ways(ask, _said)
        if wholes[-1].trouble:
            tally.judge(f"{case}, whole", ask, wholes[-1], lambda _: "")
        elif heard.trouble or len({_said(one) for one in wholes}) == 1 or _said(heard) in map(_said, wholes):
            tally.judge(case, streamed, heard, lambda h, wholes=wholes: _joined(h, wholes))  # type: ignore[misc]
        else:
            yield from _against_itself(tally, case, streamed)
    return tally


def _said(heard: ProbeAnswer) -> str:
    return heard.reasoning + heard.content


def _against_itself(
    tally: Tally, case: str, streamed: ProbeRequest
) -> Generator[Sequence[ProbeRequest], Sequence[ProbeAnswer], None]:
    """The text of one stream against the tokens of that stream, where they are served."""
    ask = ProbeRequest({**streamed.body, "logprobs": True, "stream_options": {"include_usage": True}})
    (heard,) = yield (ask,)
    if heard.trouble or not heard.tokens:
        why = heard.trouble or "no log-probabilities to compare a stream with"
        tally.unjudged.append(f"{case}: the server never repeats itself ({TRIES} greedy requests), and {why}")
        return
    tally.judge(case, ask, heard, unjoined)
    tally.notes.append(f"{case}: the server never repeats itself; a stream was compared with its own tokens")


def _joined(heard: ProbeAnswer, wholes: Sequence[ProbeAnswer]) -> str:
    joined, whole = _said(heard), _said(wholes[-1])
    if joined in map(_said, wholes):
        return ""
    at = next((n for n, (a, b) in enumerate(zip(joined, whole, strict=False)) if a != b), min(len(joined), len(whole)))
    return f"joined stream differs from character {at} on: {joined[at : at + 40]!r}, whole: {whole[at : at + 40]!r}"


def unjoined(heard: ProbeAnswer) -> str:
    """The mismatch of the text with the tokens of the same answer; '' without one.

    Engines strip white space at the ends, leave special tokens and the one that ends an answer out of the text, and
    send no text, or U+FFFD, or nothing for a token that is a part of a character.
    """
    plain = [token for token in heard.tokens if not _SPECIAL.fullmatch(token.text)]
    unreadable = _missing(heard) + sum(_PART in token.raw.decode("utf-8", "replace") for token in plain)
    unreadable += sum(not token.raw for token in plain)
    text = _legible(heard.content)
    for tokens in (heard.tokens, heard.tokens[:-1], plain, plain[:-1])[:: 1 if heard.finish != "length" else 2]:
        joined = _legible(b"".join(token.raw for token in tokens).decode("utf-8", "replace"))
        if _lacks_parts(joined, text, unreadable) if not heard.reasoning else unreadable or text in joined:
            return ""
    joined = b"".join(token.raw for token in heard.tokens).decode("utf-8", "replace")
    return f"tokens do not join to the text: {shortened(joined, 60)!r}, text: {shortened(heard.content, 60)!r}"


def _legible(text: str) -> str:
    return text.replace(_PART, "").strip()


def _lacks_parts(joined: str, text: str, most: int) -> bool:
    """True if the joined tokens are the text, apart from characters of several tokens, and a space that came with
    one."""
    at = left_out = 0
    for one in text:
        if at < len(joined) and joined[at] == one:
            at += 1
        elif one.isascii() and one != " ":
            return False
        else:
            left_out += 1
    return at == len(joined) and left_out <= 2 * most


def _missing(heard: ProbeAnswer) -> int:
    return max(heard.output_tokens - len(heard.tokens), 0)


def stop(given: ProbeInputs) -> Steps:
    """A stop string taken from the server's own greedy answer, which it may have to give more than once."""
    tally, dice = Tally(), given.dice("stop")
    ask = given.chat(_STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS)), 96, **given.whole())
    (heard,) = yield (ask,)
    text, thought = heard.content, heard.reasoning
    places = (text[at : at + 4] for at in range(len(text) // 3, len(text) - 4))
    word = next((part for part in places if part.isprintable() and _PART not in part and part not in thought), "")
    if heard.trouble or not word:
        tally.judge("without a stop string", ask, heard, lambda h: f"no stop string in {shortened(h.content, 80)!r}")
        return tally
    expected = text[: text.index(word)]
    for case, streamed in (("whole", {}), ("streamed", {"stream": True})):
        stopped = ProbeRequest({**ask.body, "stop": [word], **streamed})
        tries: list[ProbeAnswer] = []
        while len(tries) < TRIES and not (tries and _shows(tries[-1], word, expected)):
            tries += yield (stopped,)
        if _shows(tries[-1], word, expected) or all(f"{expected}{word}".startswith(one.content) for one in tries):
            tally.judge(case, stopped, tries[-1], lambda h: _stopped(h, word, expected))
        else:
            tally.unjudged.append(f"{case}: {TRIES} times another answer than the one with the stop string")
    return tally


def _shows(heard: ProbeAnswer, word: str, expected: str) -> bool:
    """Good or bad, whatever the others are. One that ends early may be another answer with the string early."""
    return bool(heard.trouble) or word in heard.content or heard.content == expected


def _stopped(heard: ProbeAnswer, word: str, expected: str) -> str:
    if word in heard.content:
        return f"the stop string {word!r} is in the answer: {shortened(heard.content, 120)!r}"
    if heard.content == expected:
        return "" if heard.finish == "stop" else f"finish_reason is {heard.finish!r}, expected 'stop'"
    if len(heard.content) > len(expected):
        return f"a part of the stop string {word!r} is in the answer: {heard.content[len(expected) :]!r}"
    return f"the answer ends {len(expected) - len(heard.content)} characters before the stop string"


def logprobs(given: ProbeInputs) -> Steps:
    tally, dice = Tally(), given.dice("logprobs")
    prompt = _STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS))
    for case, streamed in (("whole", {}), ("streamed", {"stream": True, "stream_options": {"include_usage": True}})):
        ask = given.short(prompt, _LENGTH, logprobs=True, top_logprobs=5, **streamed)
        (heard,) = yield (ask,)
        if not heard.trouble and not heard.tokens:
            tally.refused.append(f"{case}: accepted, and none sent")
            continue
        tally.judge(case, ask, heard, _consistent)
        if missing := _missing(heard):
            tally.notes.append(f"{case}: {missing} of {heard.output_tokens} tokens, parts of characters, came without")
    return tally


def _consistent(heard: ProbeAnswer) -> str:
    count, output = len(heard.tokens), heard.output_tokens
    if output and (count > output or _missing(heard) > _unsent(heard)):
        return f"{count} tokens with log-probabilities, usage counts {output}"
    for place, token in enumerate(heard.tokens):
        if not -1e9 < token.logprob <= 1e-4:
            return f"token {place}: log-probability {token.logprob}"
    others = [token for token in heard.tokens if token.top and token.logprob < max(token.top) - 0.01]
    # A repetition penalty, which models set for themselves, chooses another token now and then.
    if len(others) > _UNLIKELY * count:
        lead = max(others[0].top) - others[0].logprob
        return f"{len(others)} of {count} greedy tokens were not the most likely, the first by {lead:.2f} nats"
    return unjoined(heard)


def _unsent(heard: ProbeAnswer) -> int:
    """The most tokens that may come without a log-probability: the last one, and parts of characters."""
    return _PER_PART * sum(not one.isascii() for one in heard.content + heard.reasoning) + (heard.finish == "stop")


def probe_usage(given: ProbeInputs) -> Steps:
    tally, dice = Tally(), given.dice("usage")
    prompt = _STORY.format(place=dice.choice(PLACES), kind=dice.choice(KINDS))
    whole = given.short(prompt, _LENGTH)
    streamed = ProbeRequest({**whole.body, "stream": True, "stream_options": {"include_usage": True}})
    longer = given.short(f"{prompt} {'word ' * 40}", _LENGTH)
    first, second, third = yield (whole, streamed, longer)
    tally.judge("whole", whole, first, _adds_up)
    tally.judge("streamed", streamed, second, _adds_up)
    if not (first.trouble or second.trouble or third.trouble):
        one, other = first.prompt_tokens, second.prompt_tokens
        tally.found("both", "" if one == other else f"one prompt is {one} tokens, streamed {other}", streamed, second)
        grown = third.prompt_tokens - first.prompt_tokens
        wrong = "" if 20 <= grown <= 300 else f"40 more words are {grown} more prompt tokens"
        tally.found("longer prompt", wrong, longer, third)
    return tally


def _adds_up(heard: ProbeAnswer) -> str:
    prompt, output, total = heard.prompt_tokens, heard.output_tokens, heard.usage.get("total_tokens", 0)
    if not prompt or not output:
        return f"usage counts {prompt} prompt and {output} completion tokens"
    return "" if total == prompt + output else f"{prompt} + {output} tokens are {total} in total"


def length(given: ProbeInputs) -> Steps:
    """Exactly max_tokens where the end can be ignored, never more elsewhere."""
    tally = Tally()
    for tokens in (17,) if given.brief else (1, 17, 64):
        ask = given.short("Count upwards from one, spelled out.", tokens, **given.whole())
        (heard,) = yield (ask,)
        judged: Callable[[ProbeAnswer], str] = lambda h, tokens=tokens: _long(h, tokens, given.ignore_eos)  # type: ignore[misc] # noqa: E731
        tally.judge(f"{tokens} tokens", ask, heard, judged, strict=True)
    return tally


def _long(heard: ProbeAnswer, tokens: int, exact: bool) -> str:
    found: Any = heard.output_tokens
    if found > tokens or (exact and found != tokens):
        return f"max_tokens {tokens}, usage counts {found}"
    return f"finish_reason is {heard.finish!r}, expected 'length'" if exact and heard.finish != "length" else ""
