"""Probes of context: keys at depths of long prompts, neighbours in a batch, the prefix cache."""

from collections.abc import Generator, Sequence

from sparkwright.evals.heard import ProbeAnswer, ProbeRequest
from sparkwright.evals.probe import TRIES, ProbeInputs, Steps, Tally, parted
from sparkwright.loadgen.texts import KINDS, NAMES, PLACES

LENGTHS = (1000, 4000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_000_000)
_DEPTHS = 10
_ROOM = 400  # tokens of key, question, template and answer
_OTHERS = 16


def lengths(given: ProbeInputs) -> tuple[int, ...]:
    """Tokens of the prompts: steps of the ladder, and the longest that fits."""
    most = min(given.longest or 16_000, given.context or 16_000) - _ROOM
    return (*(one for one in LENGTHS if one < 0.8 * most), most) if most >= 200 else ()


def probe_keys(given: ProbeInputs) -> Steps:
    """One key a prompt, at ten depths of each length."""
    tally = Tally()
    if given.filler is None or not lengths(given):
        tally.refused.append(f"a context of {given.context} tokens is too short")
        return tally
    most = 0
    for tokens in lengths(given):
        dice, paragraphs = given.dice(f"keys/{tokens}"), given.filler(tokens, tokens).splitlines(keepends=True)
        for depth in range(_DEPTHS):
            name, key = dice.choice(NAMES), f"{dice.randrange(100_000, 999_999)}"
            place = round(depth * (len(paragraphs) - 1) / (_DEPTHS - 1))
            hidden = [*paragraphs[:place], f"The key of {name} is {key}.\n", *paragraphs[place:]]
            ask = given.chat(f"{''.join(hidden)}\nWhat is the key of {name}? Reply with the key and nothing else.", 32)
            (heard,) = yield (ask,)
            at = f"{heard.prompt_tokens or tokens:,} tokens, depth {depth * 100 // (_DEPTHS - 1)} %"
            tally.judge(
                at,
                ask,
                heard,
                lambda h, key=key: "" if key in h.content else f"expected {key}, found {h.content[:60]!r}",  # type: ignore[misc]
                strict=True,
            )
            most = max(most, heard.prompt_tokens)
    tally.notes.append(f"up to {most:,} tokens by usage, {_DEPTHS} depths each")
    return tally


def _story(given: ProbeInputs, number: int, **more: object) -> ProbeRequest:
    dice = given.dice(f"story/{number}")
    name, place, kind = dice.choice(NAMES), dice.choice(PLACES), dice.choice(KINDS)
    return given.short(f"Write the story of {name} and the {kind} day at {place}.", 48, **more)


def probe_batch(given: ProbeInputs) -> Steps:
    """The same prompts alone and among others: near ties may part, anything else may not."""
    tally = Tally()
    asks = [_story(given, number, logprobs=True, top_logprobs=2) for number in range(_OTHERS + 1)]
    (first,) = yield (asks[0],)
    if first.refused:
        asks = [_story(given, number) for number in range(_OTHERS + 1)]
        (first,) = yield (asks[0],)
    alone = [first]
    for ask in asks[1:4]:
        alone += yield (ask,)
    together = (yield [*asks[len(alone) :], *asks[: len(alone)]])[-len(alone) :]
    places = []
    for number, one in enumerate(alone):
        tally.judge(f"prompt {number}, alone", asks[number], one, lambda h: "")
        if one.trouble:
            continue
        place, why = (-1, "") if together[number].trouble else parted(one, together[number])
        if why and (yield from _unsteady(tally, f"prompt {number}", asks[number], one)):
            continue
        tally.judge(f"prompt {number}", asks[number], together[number], lambda h, why=why: why)  # type: ignore[misc]
        places += [place] if place >= 0 and not why else []
    tally.notes += [f"{len(places)} of {len(alone)} parted at a near tie, first at {min(places)}"] if places else []
    return tally


def _unsteady(
    tally: Tally, case: str, ask: ProbeRequest, one: ProbeAnswer
) -> Generator[Sequence[ProbeRequest], Sequence[ProbeAnswer], bool]:
    """True if the server, asked the same alone, differs from itself as far: then nothing else is to blame."""
    for _ in range(TRIES - 1):
        (again,) = yield (ask,)
        if not again.trouble and parted(one, again)[1]:
            tally.unjudged.append(f"{case}: the server does not repeat itself, also when it is asked this alone")
            return True
    return False


def cached(given: ProbeInputs) -> Steps:
    """A prompt that is new, and again when the server has it in its prefix cache."""
    tally = Tally()
    tokens = min(1500, (given.context or 4000) - _ROOM)
    if given.filler is None or tokens < 200:
        tally.refused.append(f"a context of {given.context} tokens is too short")
        return tally
    for number in range(2):
        text = given.filler(tokens, -1 - number)
        ask = given.short(f"{text}\nContinue this text.", 48, logprobs=True, top_logprobs=2)
        (cold,) = yield (ask,)
        if cold.refused:
            ask = given.short(f"{text}\nContinue this text.", 48)
            (cold,) = yield (ask,)
        tally.judge(f"prompt {number}, new", ask, cold, lambda h: "")
        if cold.trouble:
            continue
        (warm,) = yield (ask,)
        why = "" if warm.trouble else parted(cold, warm)[1]
        if why and (yield from _unsteady(tally, f"prompt {number}", ask, warm)):
            continue
        tally.judge(f"prompt {number}", ask, warm, lambda h, why=why: why)  # type: ignore[misc]
    return tally
