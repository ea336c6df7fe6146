"""Are the answers as before? Greedy texts and log-probabilities of two settings, against the noise of each alone."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from random import Random
from statistics import fmean
from types import MappingProxyType
from typing import Any

from sparkwright.domain.evaluation import Evaluation, Greedy, ProbeEvidence, ProbeOutcome, ProbeState
from sparkwright.domain.values import dataclass
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, shortened
from sparkwright.evals.probe import ProbeInputs
from sparkwright.evals.score import wilson_score
from sparkwright.loadgen.texts import KINDS, NAMES, PLACES, THINGS

AS_BEFORE, WITHIN, WORSE = "as before", "within noise of itself", "worse"
MEANS = "another kernel, cache type, graph or quantization changes the answers; speculation must not"
HINT = "read the prompts below; a change that is meant (a quantization) needs a gate on quality of its own"
TOKENS = 96
_TOP = 5
_SHOWN = 5
_DRAWS = 4000
_SIDE = 0.005  # of each of two figures, one-sided: together 1 % of equal settings are called worse
_EQUAL = 1e-3  # nats: log-probabilities are printed with fewer digits by some servers
_FRAMES = (
    "Tom has {a} {thing}s and gives away {b}. Explain step by step how many are left, then write a short story of it.",
    "Write a Python function that counts the {thing}s in a list of {a} strings, with a docstring and two examples.",
    "List {b} facts about the {place} where {name} works, one a line.",
    "Write a letter from {name} to the {place} about a {kind} {thing}.",
    "Give JSON with the keys name, place, items (list) and total for {name}, who bought {a} {thing}s at the {place}.",
    "Translate into German and French, then explain: {name} put the {kind} {thing} on the table of the {place}.",
)


def prompts(seed: int, count: int) -> tuple[str, ...]:
    dice = Random(f"{seed}/same")
    found = []
    for number in range(count):
        values = {"a": dice.randrange(12, 99), "b": dice.randrange(3, 9), "thing": dice.choice(THINGS)}
        values |= {"place": dice.choice(PLACES), "name": dice.choice(NAMES), "kind": dice.choice(KINDS)}
        found.append(_FRAMES[number % len(_FRAMES)].format(**values))
    return tuple(found)


def greedy_request(
    given: ProbeInputs, prompt: str, logprobs: bool, more: Mapping[str, Any] = MappingProxyType({})
) -> ProbeRequest:
    """more: members that the engine has of its own."""
    return given.short(prompt, TOKENS, **({"logprobs": True, "top_logprobs": _TOP} if logprobs else {}), **more)


def greedy(prompt: str, heard: Sequence[ProbeAnswer]) -> Greedy:
    """The answers to one prompt; without log-probabilities where one has none."""
    if bad := next((one for one in heard if one.trouble), None):
        return Greedy(prompt, (), error=bad.trouble)
    texts = tuple(one.reasoning + one.content for one in heard)
    if not all(one.tokens for one in heard):
        return Greedy(prompt, texts)
    tokens = tuple(tuple(token.text for token in one.tokens) for one in heard)
    return Greedy(prompt, texts, tokens, tuple(tuple(token.logprob for token in one.tokens) for one in heard))


@dataclass(frozen=True, slots=True)
class Apart:
    """The difference of two sides on one prompt. share: of the answer after the place where they part. drift: mean
    difference of log-probabilities before it, nats; None without any. at: that place, -1 for equal texts."""

    share: float
    drift: float | None
    at: int


def difference(one: tuple[Greedy, int], other: tuple[Greedy, int]) -> Apart:
    """The difference of two answers to one prompt, each by its number."""
    (first, n), (second, m) = one, other
    ours = first.tokens[n] if first.tokens and second.tokens else tuple(first.texts[n])
    theirs = second.tokens[m] if first.tokens and second.tokens else tuple(second.texts[m])
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    longest = max(len(ours), len(theirs), 1)
    at = -1 if first.texts[n] == second.texts[m] else shared
    drift = None
    if first.logprobs and second.logprobs and shared:
        pairs = zip(first.logprobs[n][:shared], second.logprobs[m][:shared], strict=True)
        drift = fmean(abs(a - b) for a, b in pairs)
    return Apart(0.0 if at < 0 else 1 - shared / longest, drift, at)


@dataclass(frozen=True, slots=True)
class PromptPair:
    """One prompt. cross: of both first answers; shares, drifts: (between the sides, of themselves)."""

    base: Greedy
    new: Greedy
    cross: Apart
    shares: tuple[float, float]
    drifts: tuple[float, float] | None


def _pair(base: Greedy, new: Greedy) -> PromptPair:
    across = [difference((base, n), (new, m)) for n in range(len(base.texts)) for m in range(len(new.texts))]
    alone = [difference((side, 0), (side, n)) for side in (base, new) for n in range(1, len(side.texts))]
    shares = fmean(one.share for one in across), fmean(one.share for one in alone) if alone else 0.0
    drifts = None
    if all(one.drift is not None for one in (*across, *alone)):
        drifts = fmean(one.drift or 0.0 for one in across), fmean([one.drift or 0.0 for one in alone] or [0.0])
    return PromptPair(base, new, across[0], shares, drifts)


def compared(base: Evaluation, new: Evaluation) -> Evaluation:
    """`new` with outcomes and verdict. Prompts without an answer on a side are counted; none in common: skipped."""
    known = {one.prompt: one for one in base.answers}
    both = [(known[one.prompt], one) for one in new.answers if one.prompt in known]
    pairs = [_pair(one, other) for one, other in both if not (one.error or other.error)]
    lost = [other.error or one.error for one, other in both if one.error or other.error]
    if not pairs:
        detail = lost[0] if lost else "no prompt in common: use the same --seed and --prompts"
        outcome = ProbeOutcome("texts", ProbeState.BROKEN if lost else ProbeState.SKIPPED, detail)
        return Evaluation(new.kind, (outcome,), new.answers)
    shares = _beyond([one.shares for one in pairs])
    drifts = _beyond([one.drifts for one in pairs if one.drifts])
    verdict = _verdict(pairs, shares[1] > 0 or _drifted(pairs, drifts))
    found = (_texts(pairs, shares), *_logprobs(pairs, drifts), *_lost(lost, len(both)))
    return Evaluation(new.kind, found, new.answers, verdict)


def _verdict(pairs: Sequence[PromptPair], beyond: bool) -> str:
    if all(one.shares[0] == 0 and (one.drifts or (0.0,))[0] < _EQUAL for one in pairs):
        return AS_BEFORE
    return WORSE if beyond else WITHIN


def _drifted(pairs: Sequence[PromptPair], beyond: tuple[float, float]) -> bool:
    across = [one.drifts[0] for one in pairs if one.drifts]
    return bool(across) and beyond[1] > 0 and fmean(across) >= _EQUAL


def _beyond(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Mean of (between the sides - of themselves), and the low end of its paired bootstrap interval."""
    if not values:
        return 0.0, 0.0
    differences, dice = [cross - alone for cross, alone in values], Random(1)
    means = sorted(fmean(dice.choices(differences, k=len(differences))) for _ in range(_DRAWS))
    return fmean(differences), means[int(_SIDE * _DRAWS)]


def _texts(pairs: Sequence[PromptPair], beyond: tuple[float, float]) -> ProbeOutcome:
    parted = sorted((one for one in pairs if one.cross.at >= 0), key=lambda one: one.cross.at)
    alone = sum(one.shares[1] > 0 for one in pairs)
    first = f", first at {parted[0].cross.at}" if parted else ""
    detail = f"{len(parted)} of {len(pairs)} part{first}; alone, {alone} part from themselves; "
    detail += f"share of text beyond noise {beyond[0]:+.3f}, at least {beyond[1]:+.3f}"
    state = ProbeState.FAILED if beyond[1] > 0 else ProbeState.PASSED
    equal = wilson_score(len(pairs) - len(parted), len(pairs))
    shown = tuple(_shown(one) for one in parted[:_SHOWN])
    texts = (MEANS, HINT) if state is ProbeState.FAILED else ("", "")
    return ProbeOutcome("texts", state, detail, len(pairs), len(parted), *texts, shown, equal)


def _shown(pair: PromptPair) -> ProbeEvidence:
    at = pair.cross.at
    unit = "token" if pair.base.tokens and pair.new.tokens else "character"
    return ProbeEvidence(
        f"{unit} {at}: {shortened(pair.base.prompt, 200)}",
        f"base: {shortened(pair.base.texts[0], 600)}",
        f"new: {shortened(pair.new.texts[0], 600)}",
    )


def _logprobs(pairs: Sequence[PromptPair], beyond: tuple[float, float]) -> tuple[ProbeOutcome, ...]:
    known = [one.drifts for one in pairs if one.drifts]
    if not known:
        return (
            ProbeOutcome(
                "logprobs", ProbeState.UNSUPPORTED, "a side has no log-probabilities: texts alone are compared"
            ),
        )
    cross, alone = fmean(one[0] for one in known), fmean(one[1] for one in known)
    detail = f"{cross:.4f} nats a token apart, {alone:.4f} from themselves; at least {beyond[1]:+.4f} beyond noise"
    state = ProbeState.FAILED if _drifted(pairs, beyond) else ProbeState.PASSED
    texts = (MEANS, HINT) if state is ProbeState.FAILED else ("", "")
    return (ProbeOutcome("logprobs", state, detail, len(known), 0, *texts),)


def _lost(lost: Sequence[str], of: int) -> tuple[ProbeOutcome, ...]:
    detail = f"{len(lost)} of {of} prompts have no answer on a side: {lost[0]}" if lost else ""
    return (ProbeOutcome("answers", ProbeState.BROKEN, detail, of, len(lost)),) if lost else ()
