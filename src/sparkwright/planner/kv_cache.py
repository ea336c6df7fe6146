"""The KV cache of one rank: what a pool holds and what full contexts need, for every engine.

A figure that cannot be computed is `unknown` with the reason, never a guess. vLLM: the arithmetic of kv_cache_utils.py
(0.19.0 to 0.33.0; differences: vllm/releases.py): blocks of one size are shared by groups of layers; a sequence of full
length holds so many blocks of each group.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import ceil

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheKind, CacheLayers, KvCapacity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import fits_context, flag_value, number
from sparkwright.engines.traits import Cache
from sparkwright.engines.vllm import releases
from sparkwright.planner import kv_sglang
from sparkwright.planner.kv_blocks import WHOLE, Group, KvBlockPool, Page, cache_pages, grouped, layer_group
from sparkwright.planner.kv_doubts import doubted
from sparkwright.planner.kv_layout import AT_MOST, assumed_draft, assumed_layer, kept_whole, layers, without_draft
from sparkwright.planner.once import compute_once

_HIDDEN = 4  # times what the sizes of tensors show: layers with windows, compressed or shared caches


def capacity(recipe: Recipe, shape: ModelShape, kv_bytes: int) -> KvCapacity:
    """The capacity of `kv_bytes` on one rank: tokens as the engine will print them, and the number that really fits.

    SGLang: bytes of keys and values alone, as it prints them (kv_sglang.token_pool counts them).
    """
    if fits_context(recipe) and shape.positions:
        return _fitted(recipe, shape, kv_bytes)
    kinds = _kinds(recipe, shape)
    if isinstance(kinds, Unknown):
        return KvCapacity(kv_bytes, unknown=kinds.why)
    found = doubted(recipe, shape, kinds, _ranged(recipe, shape, kinds, kv_bytes))
    doubt = assumed_draft(recipe, shape) or assumed_layer(recipe, shape)
    found = _batched(recipe, shape, kinds, found)
    # SGLang keeps a draft's rows in a pool of its own.
    if doubt and traits(recipe).cache is not Cache.TOKENS:
        found = _drafted(recipe, shape, found, doubt)
    return _guessed(found, shape) if (shape.inferred or shape.loose) and not found.unknown else found


def _fitted(recipe: Recipe, shape: ModelShape, kv_bytes: int) -> KvCapacity:
    """The capacity in sequences of the longest context of which one fits, up to the model's: vLLM searches it so."""
    low, high = 0, shape.positions
    while low < high:
        middle = (low + high + 1) // 2
        size = needed(_of_context(recipe, middle), shape)
        if isinstance(size, Unknown):
            break
        low, high = (middle, high) if size <= kv_bytes else (low, middle - 1)
    found = capacity(_of_context(recipe, low or shape.positions), shape, kv_bytes)
    return replace(found, context=0 if found.unknown else low)


def _of_context(recipe: Recipe, context: int) -> Recipe:
    return replace(recipe, serving=replace(recipe.serving, context=context))


def _guessed(found: KvCapacity, shape: ModelShape) -> KvCapacity:
    """The capacity with the range that tensor sizes, or a family that is not known, leave open: windows and shared
    caches keep less, copies more."""
    low, high = (found.low or found.tokens) // 2, (found.high or found.tokens) * _HIDDEN
    known = "dimensions by the tensors' sizes alone" if shape.inferred else "what such a model keeps is not known"
    why = f"{known}: {low:,} to {high:,} tokens"
    return replace(found, low=low, high=high, doubts=(*found.doubts, why))


def _drafted(recipe: Recipe, shape: ModelShape, found: KvCapacity, doubt: str) -> KvCapacity:
    """The capacity with the range that an unknown draft model leaves: all, or the rest after several times the assumed
    size."""
    alone = without_draft(recipe)
    kinds = _kinds(alone, shape)
    most = found.tokens if isinstance(kinds, Unknown) else _held(alone, shape, kinds, found.bytes).tokens
    share = found.tokens / most if most else 1.0  # what the assumed draft leaves of each byte
    least = int(found.tokens / (share + AT_MOST * (1 - share)))
    if (whole := kept_whole(recipe, shape)) and not isinstance(rows := _kinds(whole, shape), Unknown):
        least = min(least, _held(whole, shape, rows, found.bytes).tokens)
        doubt += ", or the whole context"
    low, high = min(found.low or found.tokens, least), max(found.high or found.tokens, most)
    return replace(found, low=low, high=high, doubts=(*found.doubts, f"{doubt}: {low:,} to {high:,} tokens"))


def _batched(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], found: KvCapacity) -> KvCapacity:
    """The capacity with the range of vLLM's other default batch: its windows hold the tokens of a step, too."""
    batch = releases.smaller_batch(recipe) if traits(recipe).cache is Cache.BLOCKS else 0
    if not batch or found.unknown or not any(kind.kind is CacheKind.WINDOW for kind in kinds):
        return found
    smaller = _held(replace(recipe, serving=replace(recipe.serving, batched_tokens=batch)), shape, kinds, found.bytes)
    low, high = found.low or found.tokens, max(found.high or found.tokens, smaller.tokens)
    why = f"no batched tokens in the recipe: {high:,} tokens if a step has {batch:,}"
    return found if low == high else replace(found, low=low, high=high, doubts=(*found.doubts, why))


def _held(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], kv_bytes: int) -> KvCapacity:
    layout = traits(recipe).cache
    if layout is Cache.TOKENS:
        return kv_sglang.capacity(recipe, shape, kv_bytes)
    if layout is Cache.SEQUENCES:
        # TensorRT-LLM and llama.cpp: rows of whole blocks; windows and states are what a sequence takes besides them.
        context, each = recipe.serving.context or shape.positions, _sequence(recipe, shape, kinds)
        block = traits(recipe).block
        fit = max(0, kv_bytes) / each if each else 0.0
        tokens = int(fit * context) // block * block
        why = f"{kv_bytes} B / {each} B for a sequence of {context} tokens, in blocks of {block}"
        return KvCapacity(kv_bytes, tokens, tokens, fit, block, each, why=(why,))
    return _blocks_in(recipe, shape, kinds, kv_bytes)


def _ranged(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], kv_bytes: int) -> KvCapacity:
    """The capacity with the range of the neighbouring releases, if this version was not read and they differ."""
    found = _held(recipe, shape, kinds, kv_bytes)
    runs = () if found.unknown else _around(recipe, shape)
    others = [run.engine.version for run in runs]
    counts = {one.tokens for run in runs if not (one := _held(run, shape, kinds, kv_bytes)).unknown} | {found.tokens}
    if len(counts) == 1:
        return found
    low, high, name = min(counts), max(counts), recipe.engine.version or "this version"
    why = f"{name} was not read: {low:,} to {high:,} tokens, as the releases {others[0]} to {others[-1]} would hold"
    return replace(found, low=low, high=high, doubts=(why,))


@compute_once
def _around(recipe: Recipe, shape: ModelShape) -> tuple[Recipe, ...]:
    """The recipe on the releases around a version that is none that was read, those that can run the model."""
    others = traits(recipe).neighbours(recipe, shape.architecture)
    return tuple(replace(recipe, engine=replace(recipe.engine, version=other)) for other in others)


def start(recipe: Recipe, shape: ModelShape) -> tuple[int, int] | None:
    """Bytes of one full sequence by the cheapest and the costliest release around the engine's version.

    A release that cannot run the model has none; None where no figure is known. A draft model that is not known may
    keep more than is assumed.
    """
    own = needed(recipe, shape)
    if isinstance(own, Unknown):
        return None
    whole = kept_whole(recipe, shape)
    runs = (*_around(recipe, shape), *((whole,) if whole else ()))
    sizes = [own, *(size for run in runs if isinstance(size := needed(run, shape), int))]
    return min(sizes) // (_HIDDEN if shape.inferred or shape.loose else 1), max(sizes)


def needed(recipe: Recipe, shape: ModelShape, sequences: float = 1) -> int | Unknown:
    """Bytes that one rank needs for so many sequences of the recipe's context, as the engine checks it.

    At least: what a draft model of its own keeps is assumed.
    """
    kinds = _kinds(recipe, shape)
    if isinstance(kinds, Unknown):
        return kinds
    layout = traits(recipe).cache
    if layout is Cache.TOKENS:
        return kv_sglang.needed(recipe, shape, sequences)
    if layout is Cache.SEQUENCES:
        return int(_sequence(recipe, shape, kinds) * sequences)
    made = _pool(recipe, shape, kinds)
    if isinstance(made, Unknown):
        return made
    blocks = ceil(made.per_sequence * sequences) + releases.has_release(recipe, releases.RESERVES_NULL)
    return blocks * (made.checked or made.block)


def _kinds(recipe: Recipe, shape: ModelShape) -> tuple[CacheLayers, ...] | Unknown:
    if not (recipe.serving.context or shape.positions):
        return Unknown("", "neither the recipe nor the model gives the length of a context")
    if shape.compress and traits(recipe).cache is Cache.TOKENS:
        return Unknown("", "SGLang's pools for compressed KV are not modelled")
    return layers(recipe, shape)


def _sequence(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> int:
    """Bytes of one sequence of full length on one rank. llama.cpp takes them for every slot when it starts."""
    context = recipe.serving.context or shape.positions
    return int(sum(kind.layers * _of(kind, context) for kind in kinds))


def _of(kind: CacheLayers, context: int) -> float:
    if kind.kind is CacheKind.STATE:
        return kind.state
    if kind.kind is CacheKind.WINDOW:
        return min(kind.window, context) * kind.row
    return context / kind.ratio * kind.row


def _blocks_in(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], size: int) -> KvCapacity:
    """vLLM's blocks and tokens in a pool of `size` bytes on one rank."""
    made = _pool(recipe, shape, kinds)
    if isinstance(made, Unknown):
        return KvCapacity(size, unknown=made.why)
    blocks, context = max(0, size) // made.block, recipe.serving.context or shape.positions
    # The first block stands for no content: nothing is ever written there.
    fit = max(0, blocks - 1) / made.per_sequence
    alike = Counter((group.blocks, group.tokens) for group in made.groups)
    parts = [f"{many} x {held:,} blocks of {tokens:,} tokens" for (held, tokens), many in alike.items()]
    return KvCapacity(
        bytes=size,
        reported=_reported(recipe, made, blocks, context),
        tokens=int(fit * context),
        sequences=fit,
        block=made.groups[0].tokens,
        per_sequence=made.per_sequence * made.block,
        why=(
            f"{blocks:,} blocks of {made.block:,} B",
            f"a sequence of {context:,} tokens holds {made.per_sequence:,}: {', '.join(parts)}",
        ),
    )


@compute_once
def _pool(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...]) -> KvBlockPool | Unknown:
    compressed = any(kind.kind is CacheKind.COMPRESSED for kind in kinds)
    return layered(recipe, shape, kinds) if compressed else grouped(recipe, shape, kinds)


def _reported(recipe: Recipe, made: KvBlockPool, blocks: int, context: int) -> int:
    if releases.has_release(recipe, releases.PRINTS_CONTEXTS):
        return int(blocks / (made.counted or made.per_sequence) * context)
    return blocks // len(made.groups) * made.tokens * (number(flag_value(recipe, "decode-context-parallel-size")) or 1)


@dataclass(frozen=True, slots=True)
class _Part:
    """One group and its pages, with as many layers as are in it."""

    group: Group
    pages: Sequence[Page]

    @property
    def bytes(self) -> int:
        return sum(page.layers * page.bytes for page in self.pages)

    @property
    def widest(self) -> int:
        """Layers of the page size that most of them have."""
        return max(page.layers for page in self.pages)

    def layers(self, size: int) -> int:
        return sum(page.layers for page in self.pages if page.bytes == size)


def layered(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> KvBlockPool:
    """Whole-context pages in one group; windows in groups of about as many layers as that has of one size."""
    found = cache_pages(recipe, shape, kinds)
    whole = [page for page in found if page.kind in WHOLE]
    windows: dict[tuple[int, int], list[Page]] = defaultdict(list)
    for page in found:
        if page.kind not in WHOLE:
            windows[page.tokens, page.window].append(page)
    first = _Part(layer_group(recipe, shape, whole[0]), whole)
    width = _least_padding([first.widest, *(some[0].layers for some in windows.values())], first.widest)
    parts = [first, *(part for some in windows.values() for part in _even(recipe, shape, some, width))]
    return (
        _overlaid(recipe, parts)
        if releases.overlays_groups(recipe)
        else _padded(parts, releases.has_release(recipe, releases.PACKS_BLOCKS))
    )


def _least_padding(counts: Sequence[int], least: int) -> int:
    """The width of groups, at least so many layers, that leaves fewest places empty; of equals the largest."""
    widths = range(least, max(counts) + 1)
    return min(widths, key=lambda width: (sum(-count % width for count in counts), -width))


def _even(recipe: Recipe, shape: ModelShape, some: Sequence[Page], width: int) -> list[_Part]:
    """Pages of one window over groups of at most so many layers."""
    many, one = -(-some[0].layers // width), layer_group(recipe, shape, some[0])
    return [_Part(one, [replace(page, layers=-(-(page.layers - nth) // many)) for page in some]) for nth in range(many)]


def _overlaid(recipe: Recipe, parts: Sequence[_Part]) -> KvBlockPool:
    """Groups lie over each other: a block is as large as the largest needs."""
    sizes = {page.bytes for page in parts[0].pages}
    checked = (
        0 if releases.has_release(recipe, releases.CHECKS_BLOCKS) else sum(sizes) * max(part.widest for part in parts)
    )
    return KvBlockPool(max(part.bytes for part in parts), tuple(part.group for part in parts), checked=checked)


def _padded(parts: Sequence[_Part], packed: bool) -> KvBlockPool:
    """Pages of windows are padded to the next size of the whole-context group, and all groups have the same places.

    packed (0.24.0): each size as often as the widest group has it; before, every size as often as the widest of all.
    Concurrency is counted in bytes of each group's own pages, a little less than what the blocks take.
    """
    sizes = sorted({page.bytes for page in parts[0].pages})
    raised = [_Part(part.group, [_raised(page, sizes) for page in part.pages]) for part in parts]
    most = {size: max(part.layers(size) for part in raised) for size in sizes}
    block = sum(size * (most[size] if packed else max(most.values())) for size in sizes)
    taken = sum(part.group.blocks * part.bytes for part in raised)
    return KvBlockPool(block, tuple(part.group for part in parts), counted=-(-taken // raised[0].bytes))


def _raised(page: Page, sizes: Sequence[int]) -> Page:
    return replace(page, bytes=next((size for size in sizes if size >= page.bytes), page.bytes))
