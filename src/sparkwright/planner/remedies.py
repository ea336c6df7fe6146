"""The cheapest ways to make a recipe fit that does not: found by asking a judge, never by rule of thumb."""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, Protocol

from sparkwright.domain.ledger import Fit, Lack
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe, RecipeState
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Action, Load, Remedy, Speed, Variant, Verdict
from sparkwright.planner import limits
from sparkwright.planner.knobs import TOO_LOW, Knob, Surroundings, context_of, list_knobs, setting

_SIZES = ("serving.kv_cache_bytes", "model.size", "model.on_disk")
_OWN = ("model", "engine", "parallelism", "serving", "speculation", "parsers")
_NOT_ASKED = Verdict(False, known=False)
# As little as two GB10 nodes have been reported to serve with: fraction 0.85 left 1 GB a node (recipes/schema.py).
SPARE = GIB
WANTED = 3
BUDGET = 99  # questions to the judge, all in all
PROMPT = 8192  # tokens of the prompt that "prefill" and "first token" are told for: a coding agent's first request


def changed(recipe: Recipe, variant: Variant) -> Recipe:
    """Keys are those of a recipe file; a key of `flags` is an option's name, however the recipe spells it."""
    for key, value in variant.changes:
        section, _, name = key.partition(".")
        if section == "env":
            recipe = replace(recipe, env={**recipe.env, name: value})
        elif section == "flags":
            kept = {n: v for n, v in recipe.flags.items() if n.lstrip("-").replace("_", "-") != name}
            recipe = replace(recipe, flags=kept if value is None else {**kept, name: value})
        elif section in _OWN and name:
            recipe = replace(recipe, **{section: replace(getattr(recipe, section), **{name: value})})
        else:
            recipe = replace(recipe, **{section: value})
    return recipe


def written(variant: Variant) -> str:
    """The variant on one line: commands first, each with its nodes, then the keys: `serving.context: 131072, nodes:
    4`."""
    nodes: dict[str, list[str]] = {}
    for action in variant.actions:
        nodes.setdefault(action.command, []).append("" if action.deployment else action.node)
    done = [command + (f"   # on {' and '.join(names)}" if all(names) else "") for command, names in nodes.items()]
    keys = ", ".join(f"{key}: {scalar(key, value)}" for key, value in variant.keys.items())
    return "; and ".join([*done, *([keys] if keys else [])])


def yaml_lines(variant: Variant) -> Iterator[str]:
    """The changed keys as written in a recipe, ready to paste; sections in the order of their first key."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in variant.keys.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    for section, values in sections.items():
        if "" in values:
            yield f"{section}: {scalar(section, values[''])}"
            continue
        yield f"{section}:"
        yield from (f"  {name}: {scalar(f'{section}.{name}', value)}" for name, value in values.items())


def scalar(key: str, value: Any) -> str:
    """The value as YAML; sizes of whole GiB in GiB, removed values as null."""
    if value is None or value == "":
        return "null"
    if key in _SIZES and value and value % GIB == 0:
        return f"{value // GIB} GiB"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


class Judge(Protocol):
    """The judge that knows the nodes. Equal questions get equal answers."""

    def verdict(self, recipe: Recipe, actions: Sequence[Action] = ()) -> Verdict:
        """The verdict on the recipe once the actions are done."""
        ...

    def speed(self, recipe: Recipe, load: Load) -> Speed | None:
        """The expected speed; None if unknown."""
        ...


Refusal = Callable[[Recipe, Sequence[Action]], str]


def _never_refused(recipe: Recipe, actions: Sequence[Action]) -> str:
    return ""


class Tries:
    """Judge variants of one recipe, each once, and no more than `budget` in all.

    The recipe itself is judged as the gate does it, which lets pass what has been seen to start. A proposed variant has
    to leave something free in the middle of what is expected, and no blocking check may refuse it.

    refusal: names the check that refuses a recipe once the actions are done, '' for none. It is asked only about
    variants that fit. obstacles: the checks that refused variants which fit, the first one first.
    """

    def __init__(self, recipe: Recipe, judge: Judge, budget: int, refusal: Refusal = _never_refused) -> None:
        self.recipe = recipe
        self.obstacles: dict[str, None] = {}
        self._judge, self._budget, self._refusal = judge, budget, refusal
        self._weighed: dict[str, tuple[Recipe, Verdict]] = {}
        self._seen: dict[str, Verdict] = {}

    def __call__(self, variant: Variant) -> Verdict:
        """The verdict on a variant; nothing new fits once the budget is spent."""
        key = _key(variant)
        if key not in self._seen:
            found = self.by_memory(variant)
            if key not in self._weighed:
                return found
            recipe = self._weighed[key][0]
            self._seen[key] = self._passed(recipe, variant, found) if variant != Variant() else found
        return self._seen[key]

    def by_memory(self, variant: Variant) -> Verdict:
        """The verdict without the checks, which take longer."""
        key = _key(variant)
        if key not in self._weighed and self.spent:
            return _NOT_ASKED
        if key not in self._weighed:
            recipe = changed(self.recipe, variant)
            found = self._judge.verdict(recipe, variant.actions)
            self._weighed[key] = recipe, _surely(found) if variant != Variant() else found
        return self._weighed[key][1]

    def _passed(self, recipe: Recipe, variant: Variant, found: Verdict) -> Verdict:
        refused = self._refusal(recipe, variant.actions) if found.fits else ""
        if refused:
            self.obstacles[refused] = None
        return replace(found, fits=False) if refused else found

    @property
    def asked(self) -> int:
        return len(self._weighed)

    @property
    def spent(self) -> bool:
        """True also where the recipe itself is known not to work: no change of it lifts that."""
        refused = self.recipe.state is RecipeState.REFUSED and self.obstacles
        return bool(refused) or self.asked >= self._budget


def _key(variant: Variant) -> str:
    return f"{sorted(variant.keys.items())}{variant.actions}"


def _surely(found: Verdict) -> Verdict:
    if found.fit is Fit.UNKNOWN:
        return replace(found, fits=False)
    if found.fit is Fit.MAY:
        return replace(found, fits=False, lack=found.doubt, short=1)
    if found.lack not in (None, Lack.CONTEXT) or found.room >= SPARE:
        return found
    return replace(found, fits=False, lack=Lack.NODE, short=max(found.short, SPARE - found.room))


def first_good(count: int, good: Callable[[int], bool]) -> int | None:
    """The smallest of 0..count-1 that is good, where all after a good one are good, too; None when none is.

    The last is asked first: most things that do not help do not help at their most either.
    """
    if count < 1 or not good(count - 1):
        return None
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle + 1, high)
    return high


@dataclass(frozen=True, slots=True)
class _Way:
    """The changes so far: knobs of these kinds; loss orders the ways. verdict: the judge's on them, or on the changes
    before the last where that keeps the lack."""

    variant: Variant
    loss: float
    verdict: Verdict
    kinds: frozenset[str] = frozenset()


_Found = dict[frozenset[str], _Way]


def remedies(
    recipe: Recipe, judge: Judge, world: Surroundings, refusal: Refusal = _never_refused
) -> tuple[tuple[Remedy, ...], tuple[str, ...]]:
    """Find at most three remedies, cheapest first; and the checks that refused variants that would have fitted.

    No remedies when the recipe surely fits as it is, or when nothing that is known helps. One change each; two at once
    only where fewer than three single ones help.
    """
    ask = Tries(recipe, judge, BUDGET, refusal)
    asked = ask(Variant())
    if asked.fit is Fit.FITS or not asked.known:
        return (), ()
    now = _possible(ask, recipe, world) or _Way(Variant(), 0.0, _surely(asked))
    if now.verdict.fits:
        return (_remedy(asked, recipe, now, judge, world),), ()
    every = [knob for knob in list_knobs(changed(recipe, now.variant), world) if knob.kind not in now.kinds]
    single: list[_Way] = []
    for knob in every:  # what costs more than three that fit is not shown, so nobody need ask
        if knob.steps and knob.steps[0].loss <= _dearest(_fitting(single)) and (way := _turned(ask, knob, now)):
            single.append(way)
    found = _fitting(single)
    if len(found) < WANTED:
        weak = [way for way in single if way.kinds not in found]
        _add_pairs(ask, [knob for knob in every if now.kinds | {knob.kind} not in found], weak, found)
    cheapest = sorted(found.values(), key=lambda way: way.loss)[:WANTED]
    made = tuple(_remedy(asked, recipe, way, judge, world) for way in cheapest)
    return made, tuple(ask.obstacles)


def _possible(ask: Tries, recipe: Recipe, world: Surroundings) -> _Way | None:
    """The recipe with the model's longest context, where it asks for more: whatever else is changed, this has to be."""
    most = world.shape.positions if world.shape else 0
    if not 0 < most < recipe.serving.context:
        return None
    variant = setting(context=most)
    return _Way(variant, 1 - most / recipe.serving.context, ask(variant), frozenset({"context"}))


def _fitting(ways: Sequence[_Way]) -> _Found:
    return {way.kinds: way for way in reversed(ways) if way.verdict.fits}


def _turned(ask: Tries, knob: Knob, base: _Way) -> _Way | None:
    """The mildest step that fits on top of `base`; else as far as it is worth turning before another one is, too."""
    lack = base.verdict.lack
    if lack in knob.past:
        return None

    def at(index: int) -> Verdict:
        return ask(base.variant + knob.steps[index].variant)

    # How far to turn what nowhere fits alone; what has no natural end is left (a context can always be shorter).
    ends = len(knob.steps) == 1 or (knob.past and lack in TOO_LOW)
    if lack in knob.keeps:
        return _on_top(base, knob, 0, base.verdict) if ends else None
    found = _least(ask, knob, base.variant)
    index = found if found is not None else len(knob.steps) - 1 if ends else None
    if found is not None and lack in TOO_LOW and not at(found).fits:
        index = found - 1  # the last one before it goes too far
    if index is None or index < 0:
        return None
    return _on_top(base, knob, index, at(index))


def _on_top(base: _Way, knob: Knob, index: int, verdict: Verdict) -> _Way:
    step = knob.steps[index]
    return _Way(base.variant + step.variant, base.loss + step.loss, verdict, base.kinds | {knob.kind})


def _least(ask: Tries, knob: Knob, base: Variant) -> int | None:
    """The first step that fits or goes too far: by memory, and by all checks from there on where one refuses it.

    The checks take several times as long as the verdict on memory, so that few steps are asked with them.
    """

    def good(index: int, judged: Callable[[Variant], Verdict]) -> bool:
        verdict = judged(base + knob.steps[index].variant)
        return verdict.fits or verdict.lack in knob.past

    count = len(knob.steps)
    if not count or not good(count - 1, ask):
        return None
    found = first_good(count, lambda index: good(index, ask.by_memory))
    if found is None or good(found, ask):
        return found
    later = first_good(count - found - 1, lambda index: good(found + 1 + index, ask))
    return None if later is None else found + 1 + later


def _add_pairs(ask: Tries, every: Sequence[Knob], starts: Sequence[_Way], found: _Found) -> None:
    """Two at once of those that do not help alone, each pair once: what has one extent first, the other on top."""
    for start in sorted(starts, key=lambda way: way.loss):
        for knob in every:
            kinds = start.kinds | {knob.kind}
            if len(kinds) < 2 or kinds in found or start.loss + knob.steps[0].loss >= _dearest(found):
                continue
            if start.variant.keys.keys() <= knob.steps[0].variant.keys.keys() and not start.variant.actions:
                continue  # less of it and more of it: the second undoes the first
            way = _turned(ask, knob, start)
            if way and way.verdict.fits:
                found[kinds] = way


def _dearest(found: _Found) -> float:
    """The loss below which a way is shown; any is while there are too few."""
    return sorted(way.loss for way in found.values())[WANTED - 1] if len(found) >= WANTED else inf


def _remedy(now: Verdict, recipe: Recipe, way: _Way, judge: Judge, world: Surroundings) -> Remedy:
    after, keys, verdict = changed(recipe, way.variant), way.variant.keys, way.verdict
    lost = [*list_costs(recipe, after, judge, world)]
    if 0 < verdict.tokens < now.tokens:
        lost.append(f"KV pool {now.tokens:,} -> {verdict.tokens:,} tokens")
    # A larger share for the engine is taken from all else on the node.
    if "serving.memory_fraction" in keys or "serving.kv_cache_bytes" in keys:
        lost.append(f"{gib(verdict.room)} stay free on the fullest node")
    lost += [action.lost for action in way.variant.actions]
    return Remedy(written(way.variant), tuple(lost), way.variant, after, verdict)


def list_costs(before: Recipe, after: Recipe, judge: Judge, world: Surroundings) -> tuple[str, ...]:
    """One phrase for each limit that differs, then the speeds that become worse by more than 2 %."""
    return (*_limits(before, after, world.shape), *_more(before, after, world), *_speeds(before, after, judge))


def _limits(before: Recipe, after: Recipe, shape: ModelShape | None) -> Iterator[str]:
    for what, was, now, unit in (
        ("context", context_of(before, shape), context_of(after, shape), "tokens"),
        ("at once", limits.sequences(before), limits.sequences(after), "sequences"),
        ("batched", limits.batched_tokens(before), limits.batched_tokens(after), "tokens"),
    ):
        if was != now:
            yield f"{what} {was:,} -> {now:,} {unit}" + (f" ({(now - was) / was:+.0%})" if was else "")
    old, new = before.serving, after.serving
    if old.kv_dtype != new.kv_dtype:
        yield f"KV cache {old.kv_dtype or 'auto'} -> {new.kv_dtype or 'auto'}: some precision"
    if old.memory_fraction != new.memory_fraction:
        usual = f"{old.memory_fraction:g}" if old.memory_fraction else "the engine's default"
        yield f"memory fraction {usual} -> {new.memory_fraction:g}"
    if old.kv_cache_bytes != new.kv_cache_bytes:
        yield f"KV pool {gib(old.kv_cache_bytes)} -> {gib(new.kv_cache_bytes)}"
    if limits.is_eager(after) and not limits.is_eager(before):
        yield "no CUDA graphs"
    if before.model.on_disk != after.model.on_disk:
        yield f"{gib(after.model.on_disk)} of tables are read from disk row by row: decoding up to twice as slow"


def _more(before: Recipe, after: Recipe, world: Surroundings) -> Iterator[str]:
    """Other weights and more machines."""
    used = [
        (stored, use) for stored, use in world.checkpoints if after.model.label in (stored.id, stored.checkpoint.path)
    ]
    if before.model.label != after.model.label:
        told = [f"{stored.format} weights, {gib(stored.size)} on {stored.node}" for stored, _ in used[:1]]
        yield "; ".join([*(told or ["other weights"]), *(use.why for _, use in used[:1] if use.why)])
    if before.nodes != after.nodes:
        there = "" if after.nodes <= world.nodes else f" than now; the cluster has {world.nodes}"
        more = after.nodes - before.nodes
        yield f"{more} more node{'s' if more > 1 else ''}{there}"


def _speeds(before: Recipe, after: Recipe, judge: Judge) -> Iterator[str]:
    load = Load(prompt=PROMPT)
    old, new = judge.speed(before, load), judge.speed(after, load)
    pairs = {"decoding": (old.decode, new.decode), "prefill": (old.prefill, new.prefill)} if old and new else {}
    for what, (was, now) in pairs.items():
        if was.known and now.known and now.value < 0.98 * was.value:
            yield f"{what} about {was.value:,.0f} -> {now.value:,.0f} tokens/s"
