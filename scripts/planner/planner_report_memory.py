"""Weights, KV pool, its tokens, and whether a row's configuration fits: the planner's answers next to the row's."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import planner_report_peer as peer
import planner_report_words as words
from planner_report_answers import PlannerAnswer, attention_kind
from planner_report_rows import NODE_GIB, PlannerCase

from sparkwright.domain.facts import Gpu, Memory, NodeFacts, Unknown
from sparkwright.domain.ledger import KV_POOL, Fit, LedgerLine, MemoryLedger
from sparkwright.domain.ledger import WEIGHTS as WEIGHTS_LINE
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.engines.catalog import ENGINES, traits
from sparkwright.engines.traits import Cache, Claim
from sparkwright.engines.vllm import releases
from sparkwright.planner.kv_cache import capacity
from sparkwright.planner.kv_layout import assumed_draft
from sparkwright.planner.ledger import ledger
from sparkwright.planner.parallelism import refusals
from sparkwright.planner.stock import node_types
from sparkwright.planner.weights import BY_MAKER, rank_weights

DRAFTED, UNSIZED = "kv_tokens_unknown_draft", "weights_unsized"
TOKENS, WEIGHTS, POOL, FITS = "kv_tokens_given_gib", "weights_gib", "kv_gib", "fits"
# Printed GiB have two decimals.
_ROUNDING = 0.005
_ROUNDED_DOWN = 0.02
_COARSE = 0.03
MAY = "may not fit: the ends of the pool's range differ"
# A failure of these kinds is one of memory; a missing kernel is not the planner's to foresee.
_OF_MEMORY = re.compile(r"oom|memory|\bkv\b|\bgi?b\b|swap|floor", re.IGNORECASE)
_NO_FRACTION = "the source gives no memory fraction"
_PINNED = "the command fixes the pool: nothing to predict"
_NO_SIZE = "the size of the checkpoint is not known"
_ANY_FRACTION = (0.92, 0.88, 0.84, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3)
_ANY_BATCH = (2048, 8192)  # defaults of today's engines
_FEW = (16, 2048)  # sequences and batched tokens as careful recipes have them, far below the engines' defaults
_HANGS = 0.15
_ANY_CONTEXT = 4096  # tokens, where a row does not say how long its context is


def answers(case: PlannerCase) -> Iterator[PlannerAnswer]:
    if case.recipe.engine.name not in ENGINES:
        return
    released = _released(case)
    for ask in (_tokens, _weights, _pool, _fits):
        yield from ask(released)


def _released(case: PlannerCase) -> PlannerCase:
    """The case with the release that prints the row's concurrency in the row's pool; unchanged if none does."""
    found = _generation(case)
    return replace(case, recipe=found[-1]) if found and case.recipe not in found else case


def _generation(case: PlannerCase) -> list[Recipe]:
    """The recipe on every release that the row may mean and whose blocks give the concurrency that it prints.

    () where the row states its release, prints no concurrency, or a draft model that nobody describes decides.
    """
    shape, given, printed = case.shape, _figure(case, "kv_cache_gib"), _figure(case, "max_concurrency")
    if not (given and printed and isinstance(shape, ModelShape)) or assumed_draft(case.recipe, shape):
        return []
    low, _, high = _sizes(case, given)
    edges = ((run, _together(run, shape, low), _together(run, shape, high)) for run in _candidates(case))
    return [run for run, least, most in edges if least - _ROUNDING <= printed <= most + _ROUNDING]


def _candidates(case: PlannerCase) -> list[Recipe]:
    """The recipe on each release that was read and can run the model, of a row without a version or without a patch."""
    recipe, engine = case.recipe, case.recipe.engine
    architecture = case.shape.architecture if isinstance(case.shape, ModelShape) else ""
    if not case.assumed and engine.version in engine.image:
        return []
    read = traits(recipe).neighbours(_on(recipe, words.UNTAGGED), architecture)
    minor = "" if case.assumed else engine.version.rpartition(".")[0] + "."
    return [recipe, *(_on(recipe, name) for name in read if name.startswith(minor) and name != engine.version)]


def _on(recipe: Recipe, version: str) -> Recipe:
    return replace(recipe, engine=replace(recipe.engine, version=version))


def _together(recipe: Recipe, shape: ModelShape, size: int) -> float:
    """Full contexts in a pool of `size` bytes as the release prints them; nan where that is not known."""
    found = capacity(recipe, shape, size)
    if found.unknown:
        return math.nan
    contexts = traits(recipe).cache is Cache.BLOCKS and releases.has_release(recipe, releases.PRINTS_CONTEXTS)
    return found.reported / (recipe.serving.context or shape.positions) if contexts else found.sequences


def _tokens(case: PlannerCase) -> Iterator[PlannerAnswer]:
    given, published = _figure(case, "kv_cache_gib"), _figure(case, "kv_cache_tokens")
    if given <= 0 or published <= 0:
        return
    other = peer.tokens(case, given * GIB)
    if isinstance(case.shape, Unknown):
        yield _unanswered(case, TOKENS, published, case.shape.why, other)
        return
    shape = case.shape
    low, found, high = (capacity(case.recipe, shape, size) for size in _sizes(case, given))
    why = found.unknown or _too_coarse(low.reported, high.reported) or _no_context(case, shape, found.bytes)
    if why:
        yield _unanswered(case, TOKENS, published, why, other)
    else:
        # What a draft model keeps that the source does not describe is assumed after others
        quantity = DRAFTED if assumed_draft(case.recipe, shape) else TOKENS
        also = [capacity(recipe, shape, found.bytes).reported for recipe in _unsaid(case)]
        # A version that was not read has room for what the releases around it have
        also += [tokens * found.reported // max(1, found.tokens) for tokens in (found.low, found.high) if tokens]
        edges = (float(min(low.reported, *also)), float(max(high.reported, *also)))
        yield _answered(case, quantity, published, (found.reported, *edges), other)


def _sizes(case: PlannerCase, given: float) -> tuple[int, int, int]:
    """Bytes of the pool: at least, as printed, at most. A pin near the print is exact; SGLang prints two halves."""
    pin, off = case.recipe.serving.kv_cache_bytes, _ROUNDING * (1 + (traits(case.recipe).cache is Cache.TOKENS))
    if pin and abs(pin / GIB - given) < _ROUNDED_DOWN:
        return pin, pin, pin
    return int((given - off) * GIB), int(given * GIB), int((given + off) * GIB)


def _unsaid(case: PlannerCase) -> list[Recipe]:
    """The recipe as it may have been: the engine's version and its steps' tokens where the row does not state them.

    Windows hold the tokens of a step, and versions count them differently.
    """
    recipe, serving = case.recipe, case.recipe.serving
    dated = [_on(recipe, name) for name in words.releases(recipe.engine.name) if case.assumed]
    made = _generation(case) or dated or _candidates(case)
    sizes = () if serving.batched_tokens else _ANY_BATCH
    return [recipe, *made, *(replace(recipe, serving=replace(serving, batched_tokens=size)) for size in sizes)]


def _too_coarse(low: int, high: int) -> str:
    return "the source's GiB are rounded too coarsely" if high - low > _COARSE * high else ""


def _no_context(case: PlannerCase, shape: ModelShape, size: int) -> str:
    """A count of tokens that hangs on the context's length, of a row that does not give it."""
    if case.recipe.serving.context or not traits(case.recipe).checks_context:
        return ""
    short = replace(case.recipe, serving=replace(case.recipe.serving, context=shape.positions // 4 or 1))
    once, again = capacity(case.recipe, shape, size).reported, capacity(short, shape, size).reported
    return "the source gives no context length, and the count hangs on it" if abs(once - again) > 0.01 * once else ""


def _weights(case: PlannerCase) -> Iterator[PlannerAnswer]:
    published, shape = _figure(case, "weights_gib_per_node"), case.recipe.model.shape
    if published > 0 and _which(case):
        yield _unanswered(case, WEIGHTS, published, _which(case), peer.weights(case))
    elif published > 0:
        line = rank_weights(case.recipe, shape, None, unified=not case.row.get("own_memory"))
        # What makers of such a checkpoint leave in 16 bits only its size or its tensors tell
        open_mix = shape is not None and not case.size and BY_MAKER & {shape.format, shape.expert_format}
        yield _of_line(case, UNSIZED if open_mix else WEIGHTS, published, line, peer.weights(case))


def _which(case: PlannerCase) -> str:
    """Tables next to the vocabulary are up to half of a model, and published checkpoints differ in what has them."""
    tables = isinstance(case.shape, ModelShape) and (case.shape.tables or case.shape.tables_unknown)
    return "" if not tables or case.size else "the source does not state which checkpoint, and its tables decide"


def _pool(case: PlannerCase) -> Iterator[PlannerAnswer]:
    published = _figure(case, "kv_cache_gib")
    if published <= 0:
        return
    serving, other = case.recipe.serving, peer.kv_pool_bytes(case)
    if serving.kv_cache_bytes or not serving.memory_fraction:
        yield _unanswered(case, POOL, published, _PINNED if serving.kv_cache_bytes else _NO_FRACTION, other)
        return
    if why := _which(case):
        yield _unanswered(case, POOL, published, why, other)
        return
    found = _ledger(case, case.recipe)
    line, weights = found.line(KV_POOL), found.line(WEIGHTS_LINE)
    if line is None or not weights or not weights.bytes:
        yield _unanswered(case, POOL, published, _NO_SIZE, other)
    elif why := _no_limits(case, found, weights.bytes):
        yield _unanswered(case, POOL, published, why, other)
    else:
        yield _of_line(case, POOL, published, line, other)


def _no_limits(case: PlannerCase, found: MemoryLedger, weights: int) -> str:
    """A pool that hangs on limits that the row does not give: on them rests much of what the weights leave."""
    serving = case.recipe.serving
    if serving.sequences or serving.batched_tokens or not traits(case.recipe).checks_context:
        return ""
    few = replace(case.recipe, serving=replace(serving, sequences=_FEW[0], batched_tokens=_FEW[1]))
    rests = found.engine_bytes - _ledger(case, few).engine_bytes
    why = "the source gives a limit neither on sequences nor on batched tokens, and the pool hangs on them"
    return why if rests > _HANGS * (found.claim - weights) else ""


def _fits(case: PlannerCase) -> Iterator[PlannerAnswer]:
    published, failure = case.result.get("fits"), str(case.result.get("failure") or "")
    if case.row.get("own_memory"):  # of another machine's GPU
        return
    if not isinstance(published, bool) or (not published and not _OF_MEMORY.search(failure)):
        return
    other = peer.context_fits(case)
    if isinstance(case.shape, Unknown):
        yield _unanswered(case, FITS, published, case.shape.why, other)
    elif not case.row.get("nodes"):
        yield _unanswered(case, FITS, published, "the source does not state how many nodes", other)
    elif why := _which(case):
        yield _unanswered(case, FITS, published, why, other)
    elif not rank_weights(case.recipe, case.shape, None).bytes:
        yield _unanswered(case, FITS, published, _NO_SIZE, other)
    else:
        found, silent = _verdict(case), _silent(case)
        if found is Fit.NOT or (found is Fit.FITS and not silent):
            yield PlannerAnswer(case.id, FITS, attention_kind(case), published, predicted=found is Fit.FITS, peer=other)
        else:
            yield replace(_unanswered(case, FITS, published, silent or MAY, other), passed=True)


def _silent(case: PlannerCase) -> str:
    """The decisive condition that the source omits; '' if all are stated, or the whole context fits."""
    serving, claims = case.recipe.serving, traits(case.recipe).claim is not Claim.NONE
    stated = {
        "memory fraction": serving.memory_fraction or serving.kv_cache_bytes or not claims,
        "limits on sequences or batched tokens": serving.sequences or serving.batched_tokens,
        "context": serving.context or _fits_whole(case),
    }
    return next(
        (f"not refused, and the source does not state the {name}" for name, is_ in stated.items() if not is_), ""
    )


def _fits_whole(case: PlannerCase) -> bool:
    """True if it fits with the longest context that the model takes, which is the engines' default."""
    context = case.shape.positions if isinstance(case.shape, ModelShape) else 0
    serving = replace(case.recipe.serving, context=context)
    return context > 0 and _verdict(replace(case, recipe=replace(case.recipe, serving=serving))) is Fit.FITS


def _verdict(case: PlannerCase) -> Fit:
    """The verdict; if the row leaves fraction or context open, the best of all.

    A split that published engines refuse is a fork's: what it does instead is not known.
    """
    serving = case.recipe.serving
    context = serving.context or _ANY_CONTEXT
    fractions = (serving.memory_fraction,) if serving.memory_fraction else _ANY_FRACTION
    tried = (replace(serving, context=context, memory_fraction=fraction) for fraction in fractions)
    found = {_ledger(case, replace(case.recipe, serving=each)).fit for each in tried}
    best = next(fit for fit in Fit if fit in found)
    shape = None if isinstance(case.shape, Unknown) else case.shape
    return Fit.MAY if best is Fit.FITS and refusals(shape, case.recipe, case.recipe.parallelism) else best


def _ledger(case: PlannerCase, recipe: Recipe) -> MemoryLedger:
    return ledger(recipe, _node(case), None, recipe.nodes)


def _node(case: PlannerCase) -> NodeFacts:
    """A node with nothing else on it: the GB10 of the row, or the discrete GPU that it reports."""
    unified = case.memory == int(NODE_GIB * GIB) or case.memory < 128 * GIB
    stock = node_types()["gb10"]
    free = case.memory - (int((stock.total - stock.free) * GIB) if unified else 0)
    memory = Memory(case.memory, free, free, 0, 0, 0, 0, unsure=int(stock.unsure * GIB) if unified else 0)
    size: int | Unknown = Unknown("[N/A]", "not stated") if unified else case.memory
    gpu = Gpu("NVIDIA GB10" if unified else "discrete GPU", "", "12.1", size, memory_reserved=0)
    return NodeFacts("node", 0.0, memory=memory, gpus=(gpu,), gpu_processes=(), ranks=())


def _of_line(
    case: PlannerCase, quantity: str, published: float, line: LedgerLine, other: float | None
) -> PlannerAnswer:
    if not line.known:
        return _unanswered(case, quantity, published, _NO_SIZE, other)
    low, high = (line.bytes if edge is None else edge for edge in (line.low, line.high))
    sizes = (line.bytes / GIB, low / GIB, high / GIB)
    return _answered(case, quantity, published, sizes, other / GIB if other else None)


def _answered(
    case: PlannerCase, quantity: str, published: float, found: tuple[float, float, float], other: float | None
) -> PlannerAnswer:
    value, low, high = found
    return PlannerAnswer(case.id, quantity, attention_kind(case), published, value, low, high, peer=other)


def _unanswered(
    case: PlannerCase, quantity: str, published: float | bool, why: str, other: float | bool | None
) -> PlannerAnswer:
    return PlannerAnswer(case.id, quantity, attention_kind(case), published, reason=why, peer=other)


def _figure(case: PlannerCase, name: str) -> float:
    value = case.result.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
