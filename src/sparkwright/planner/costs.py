"""What one recipe gives up against another, in numbers."""

from collections.abc import Iterator

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.speed import Estimate, Load
from sparkwright.domain.units import gib
from sparkwright.planner import limits
from sparkwright.planner.knobs import Surroundings, context_of
from sparkwright.planner.search import Judge

PROMPT = 8192  # tokens of the prompt that "prefill" and "first token" are told for: a coding agent's first request


def costs(before: Recipe, after: Recipe, judge: Judge, world: Surroundings) -> tuple[str, ...]:
    """One phrase for each limit that differs, then the speeds that become worse by more than 2 %."""
    return (*_limits(before, after, world.shape), *_more(before, after, world), *_speeds(before, after, judge))


def _limits(before: Recipe, after: Recipe, shape: ModelShape | None) -> Iterator[str]:
    old, new = before.serving, after.serving
    yield from _fewer("context", context_of(before, shape), context_of(after, shape), " tokens")
    yield from _fewer("at once", limits.sequences(before), limits.sequences(after), " sequences")
    yield from _fewer("batched", limits.batched_tokens(before), limits.batched_tokens(after), " tokens")
    if old.kv_dtype != new.kv_dtype:
        yield f"KV cache {old.kv_dtype or 'auto'} -> {new.kv_dtype or 'auto'}: some precision"
    if old.memory_fraction != new.memory_fraction:
        was = f"{old.memory_fraction:g}" if old.memory_fraction else "the engine's default"
        yield f"memory fraction {was} -> {new.memory_fraction:g}"
    if old.kv_cache_bytes != new.kv_cache_bytes:
        yield f"KV pool {gib(old.kv_cache_bytes)} -> {gib(new.kv_cache_bytes)}"
    if limits.eager(after) and not limits.eager(before):
        yield "no CUDA graphs"


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


def _fewer(what: str, old: int, new: int, unit: str) -> Iterator[str]:
    if old != new:
        share = f" ({(new - old) / old:+.0%})" if old else ""
        yield f"{what} {old:,} -> {new:,}{unit}{share}"


def _speeds(before: Recipe, after: Recipe, judge: Judge) -> Iterator[str]:
    load = Load(prompt=PROMPT)
    old, new = judge.speed(before, load), judge.speed(after, load)
    if old is None or new is None:
        return
    yield from _slower("decoding", old.decode, new.decode)
    yield from _slower("prefill", old.prefill, new.prefill)


def _slower(what: str, old: Estimate, new: Estimate) -> Iterator[str]:
    if old.known and new.known and new.value < 0.98 * old.value:
        yield f"{what} about {old.value:,.0f} -> {new.value:,.0f} tokens/s"
