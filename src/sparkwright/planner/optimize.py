"""`plan --optimize`: the limits that reach most for one goal, among those that fit.

Judged are KV types x batched tokens x sequences, with the largest memory fraction that leaves a reserve: at most a few
hundred questions. Estimates of speed only decide between settings that fit.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.domain.values import dataclass
from sparkwright.domain.verdict import Choice, Goal, Load, Optimum, Speed, Variant
from sparkwright.planner import limits
from sparkwright.planner.knobs import (
    LEAST_FRACTION,
    MOST_FRACTION,
    TOO_HIGH,
    Surroundings,
    context_of,
    contexts,
    eight_bits,
    fractions,
    setting,
)
from sparkwright.planner.remedies import Judge, Tries, changed, first_good

BUDGET = 499
# What a larger fraction leaves free beside everything: the least with which a soak of 8 hours ran without errors on two
# GB10 nodes was 3.5 to 4.2 GiB.
RESERVE = 4 * GIB
PROMPT, ANSWER = 4096, 512  # tokens of the request that throughput and latency are given for: an agent's step
AT_ONCE = (1, 2, 4, 8)
_BATCHED = (2048, 4096, 8192, 16384)
_SEQUENCES = (1, 2, 4, 8, 16, 32, 64)
_FRACTIONS = tuple(reversed(fractions(LEAST_FRACTION, MOST_FRACTION)))
_ROWS = 8
_WHY = {
    Goal.CONTEXT: "the longest context that fits once; below, what fits for more sequences at once",
    Goal.THROUGHPUT: f"most tokens/s of answers of {ANSWER} tokens to prompts of {PROMPT:,}, all sequences busy",
    Goal.LATENCY: f"the soonest answer of {ANSWER} tokens to a prompt of {PROMPT:,}, one request alone",
}
# By how much a score must be better to be worth a change: tokens are counted, speeds are estimates.
_WORTH = {Goal.CONTEXT: 1.0, Goal.THROUGHPUT: 1.02, Goal.LATENCY: 1.02}


@dataclass(frozen=True, slots=True)
class _Search:
    recipe: Recipe
    judge: Judge
    world: Surroundings
    ask: Tries

    def only(self, **serving: Any) -> Variant:
        """The change of these limits, without those that are as they were."""
        told = {"batched_tokens": limits.batched_tokens, "sequences": limits.sequences}
        now = {
            name: told[name](self.recipe) if name in told else getattr(self.recipe.serving, name) for name in serving
        }
        return setting(**{name: value for name, value in serving.items() if value and value != now[name]})


def optimize(recipe: Recipe, judge: Judge, world: Surroundings, goal: Goal) -> Optimum:
    """The best setting for the goal, and what others would give. Where nothing better fits, best is before."""
    search = _Search(recipe, judge, world, Tries(recipe, judge, BUDGET))
    before = _scored(search, goal, Variant())
    # The highest score first; of equals the one that changes least.
    found = sorted(_found(search, goal), key=lambda choice: (-choice.score, len(choice.variant.changes)))
    best = _best(found, goal) or before
    better = not before.verdict.fits or best.score > before.score * _WORTH[goal]
    return Optimum(goal, before, best if better else before, _different(found, goal), _WHY[goal], search.ask.asked)


def _best(found: Sequence[Choice], goal: Goal) -> Choice | None:
    """The choice with the fewest changes among those as good as the first, within the precision of estimates."""
    alike = [choice for choice in found if choice.score * _WORTH[goal] >= found[0].score]
    return min(alike, key=lambda choice: len(choice.variant.changes), default=None)


def _found(search: _Search, goal: Goal) -> Iterator[Choice]:
    """Settings that fit; for `context` the longest of each base and number of sequences at once.

    None where nobody knows what is taken; or what a KV pool holds, unless one request alone is all that counts.
    """
    now = search.ask(Variant())
    if not now.known or (now.kv is None and goal is not Goal.LATENCY):
        return
    bases = tuple(_bases(search, goal))
    if goal is Goal.CONTEXT:
        longest = (_longest(search, base, count) for count in AT_ONCE for base in bases)
        yield from (_scored(search, goal, variant) for variant in longest if variant)
        return
    context = _context(search, bases)
    wide = dict.fromkeys((*_SEQUENCES, limits.sequences(search.recipe))) if goal is Goal.THROUGHPUT else (0,)
    for base, sequences in product(bases, wide):
        variant = base + search.only(context=context, sequences=sequences)
        recipe = changed(search.recipe, variant)
        # vLLM wants as many batched tokens as sequences at least
        if limits.batched_tokens(recipe) >= limits.sequences(recipe) and search.ask(variant).fits:
            yield _scored(search, goal, variant)


def _bases(search: _Search, goal: Goal) -> Iterator[Variant]:
    """KV type x batched tokens with the recipe's own memory fraction, where that fits, and with the largest."""
    types = dict.fromkeys(("", eight_bits(search.recipe, search.world.kv_dtypes)))
    batched = (0, _BATCHED[0]) if goal is Goal.CONTEXT else (0, *_BATCHED)
    shares = dict.fromkeys((0.0, _largest_fraction(search)))
    found = (
        search.only(memory_fraction=share, kv_dtype=kind, batched_tokens=tokens)
        for share, kind, tokens in product(shares, types, batched)
    )
    yield from {str(variant): variant for variant in found}.values()


def _largest_fraction(search: _Search) -> float:
    """The largest fraction that leaves the reserve; 0 (the recipe's own) for an engine that claims no share, or whose
    KV pool is pinned."""
    if search.recipe.serving.kv_cache_bytes or not search.world.fraction:
        return 0.0

    def free(index: int) -> bool:
        found = search.ask(setting(memory_fraction=_FRACTIONS[index]))
        return found.lack not in TOO_HIGH and found.room >= RESERVE

    index = first_good(len(_FRACTIONS), free)
    return 0.0 if index is None else _FRACTIONS[index]


def _longest(search: _Search, base: Variant, count: int) -> Variant | None:
    """`base` with the longest context of which so many sequences fit at once; None when none of 2,048 tokens does."""
    most = search.world.shape.positions if search.world.shape else 0
    lengths = contexts(max(most, search.recipe.serving.context))
    wide = search.only(sequences=count) if limits.sequences(search.recipe) < count else Variant()

    def variant(index: int) -> Variant:
        return base + wide + search.only(context=lengths[index])

    def fits(index: int) -> bool:
        found = search.ask(variant(index))
        return found.fits and found.sequences >= count

    index = first_good(len(lengths), fits)
    return None if index is None else variant(index)


def _context(search: _Search, bases: Sequence[Variant]) -> int:
    """The recipe's own where it can be had (0: as it is), else the longest that fits."""
    if any(search.ask(base).fits for base in bases):
        return 0
    found = (_longest(search, base, 1) for base in bases)
    return max((changed(search.recipe, variant).serving.context for variant in found if variant), default=0)


def _scored(search: _Search, goal: Goal, variant: Variant) -> Choice:
    recipe, verdict = changed(search.recipe, variant), search.ask(variant)
    alone = search.judge.speed(recipe, Load(prompt=PROMPT))
    # Requests of that prompt and answer that the KV pool holds at once
    busy = max(1, min(limits.sequences(recipe), verdict.tokens // (PROMPT + ANSWER) if verdict.kv else 1))
    together = search.judge.speed(recipe, Load(depth=PROMPT, concurrency=busy, prompt=PROMPT)) if busy > 1 else alone
    score = float(context_of(recipe, search.world.shape))
    if goal is Goal.LATENCY:
        score = answers(alone, 1)
    elif goal is Goal.THROUGHPUT:
        score = answers(together, busy)
    return Choice(variant, recipe, verdict, alone, together, score)


def answers(speed: Speed | None, busy: int) -> float:
    """Tokens/s of all together: prompts are read one after the other, answers written side by side. 0: not known."""
    if speed is None or not (speed.decode.known and speed.prefill.known):
        return 0.0
    return busy * ANSWER / (busy * PROMPT / speed.prefill.value + ANSWER / speed.decode.value)


def _different(found: Iterable[Choice], goal: Goal) -> tuple[Choice, ...]:
    """The best of each kind: by sequences at once for `context`, by limits of batches else."""
    best: dict[Hashable, Choice] = {}
    for choice in found:
        best.setdefault(_KINDS[goal](choice), choice)
    return tuple(best.values())[:_ROWS]


_KINDS: Mapping[Goal, Callable[[Choice], Hashable]] = {
    Goal.CONTEXT: lambda choice: int(choice.verdict.sequences),
    Goal.THROUGHPUT: lambda choice: limits.sequences(choice.recipe),
    Goal.LATENCY: lambda choice: (choice.recipe.serving.kv_dtype, limits.batched_tokens(choice.recipe)),
}
