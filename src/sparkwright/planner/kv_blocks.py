"""vLLM's pages and groups: tokens and bytes of a page, layers that share block tables, and the size of a block."""

from collections.abc import Sequence
from math import lcm

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.options import flag_value, number
from sparkwright.engines.vllm import releases

WHOLE = (CacheKind.FULL, CacheKind.MLA, CacheKind.INDEX, CacheKind.COMPRESSED)  # kinds that keep the whole context
_DEFAULT = 16
_V4 = 256
_SPARSE = {"": 64, "dsa": 64, "msa": 128, "qsa": 16}  # what each indexer's kernel asks for
# Attention backends that take no blocks of 16 (their get_supported_kernel_block_sizes).
_BACKENDS = {"FLASHMLA": 64, "CUTLASS_MLA": 128, "FLASHINFER_MLA": 32, "TOKENSPEED_MLA": 32, "FLASHMLA_SPARSE": 64}
_MLA_HYBRID = 128
_CHUNKED = ("Llama4ForConditionalGeneration", "Llama4ForCausalLM")  # chunks of attention begin where blocks do
_CHUNK = 128  # of Mamba-2's scan, where a state is kept at the end of every block
_V4_ALIGN = 576  # FlashMLA's; pages of V4 are rounded up to it
_NEARLY_EVEN = 1.5  # below this ratio of most to fewest layers, groups are padded to the most


@dataclass(frozen=True, slots=True)
class Page:
    """Layers whose page is the same. tokens: of one page. bytes: of one page and layer. foreign: of another model."""

    kind: CacheKind
    layers: int
    tokens: int
    bytes: int
    window: int = 0
    foreign: bool = False


def cache_pages(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> tuple[Page, ...]:
    """Pages of every kind; states are padded to a page of attention."""
    block = block_size(recipe, shape, kinds)
    rows = _attention_rows(kinds)
    padded = int(block * max(rows)) if rows else 0
    return tuple(_page(kind, block, padded, bool(shape.compress)) for kind in kinds)


def block_size(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> int:
    """Tokens a block: the recipe's or the backend's, raised until attention's page holds a state.

    (vLLM, platforms/interface.py: _align_hybrid_block_size.)
    """
    base = number(flag_value(recipe, "block-size")) or _usual(recipe, shape)
    state = max((kind.state for kind in kinds if kind.kind is CacheKind.STATE), default=0)
    rows = _attention_rows(kinds)
    if not state or not rows:
        return base
    step = max(base, _MLA_HYBRID) if shape.latent and releases.has_release(recipe, releases.ALIGNS_MLA) else base
    step = (
        max(step, _CHUNK)
        if releases.keeps_history(recipe, shape)
        else lcm(step, releases.checkpoint_tokens(recipe, shape) or 1)
    )
    return max(base, step * -(-state // int(step * max(rows))))


def unified(recipe: Recipe, found: Sequence[Page]) -> tuple[Page, ...] | Unknown:
    """All pages as large as the largest: more tokens in the smaller ones, or padding where that does not go up."""
    largest = max(page.bytes for page in found)
    made = tuple(_grown(page, largest) for page in found)
    uneven = [page for page in made if page.bytes != largest]
    if uneven and (
        not releases.has_release(recipe, releases.PADS_PAGES) or any(page.kind is CacheKind.MLA for page in uneven)
    ):
        sizes = " and ".join(str(size) for size in sorted({page.bytes for page in found}))
        return Unknown("", f"vLLM {recipe.engine.version} cannot share blocks between pages of {sizes} B")
    return tuple(replace(page, bytes=largest) for page in made)


def _grown(page: Page, largest: int) -> Page:
    if page.kind is CacheKind.STATE or largest % page.bytes:
        return replace(page, bytes=largest) if page.kind is CacheKind.STATE else page
    return replace(page, tokens=page.tokens * (largest // page.bytes), bytes=largest)


def _attention_rows(kinds: Sequence[CacheLayers]) -> list[float]:
    """Rows of the layers that decide how large a page is."""
    return [kind.row for kind in kinds if kind.kind in (CacheKind.FULL, CacheKind.MLA)]


def _usual(recipe: Recipe, shape: ModelShape) -> int:
    if shape.compress:
        return _V4
    if shape.index_layers:
        return _SPARSE.get(shape.index_kind, _DEFAULT)
    return _BACKENDS.get(str(flag_value(recipe, "attention-backend")).upper(), _DEFAULT)


def _page(kind: CacheLayers, block: int, padded: int, aligned: bool) -> Page:
    if kind.kind is CacheKind.STATE:
        return Page(kind.kind, kind.layers, block, max(kind.state, padded))
    tokens = kind.block or block
    entries = tokens if kind.kind is CacheKind.WINDOW else max(1, tokens // kind.ratio)
    size = int(entries * kind.row)
    size = -(-size // _V4_ALIGN) * _V4_ALIGN if aligned else size
    return Page(kind.kind, kind.layers, tokens, size, kind.window, kind.foreign)


@dataclass(frozen=True, slots=True)
class Group:
    """blocks: that a sequence of full length holds. tokens: of one page."""

    blocks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class KvBlockPool:
    """block: bytes of one block.

    counted: blocks of a full sequence as the engine's line counts them, 0: as many as it holds. checked: bytes of a
    block as the engine counts what a request needs, 0: as large as it is.
    """

    block: int
    groups: tuple[Group, ...]
    counted: int = 0
    checked: int = 0

    @property
    def per_sequence(self) -> int:
        """Blocks of one full sequence."""
        return sum(group.blocks for group in self.groups)

    @property
    def tokens(self) -> int:
        """Tokens of the smallest page."""
        return min(group.tokens for group in self.groups)


def grouped(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> KvBlockPool | Unknown:
    """Groups of one rank's layers for sequences of the recipe's context."""
    found = cache_pages(recipe, shape, kinds)
    names = {page.kind for page in found}
    if names <= set(WHOLE):
        return _single(recipe, shape, found)
    if {CacheKind.STATE, CacheKind.INDEX} <= names:
        return _packed(recipe, shape, found)
    return _shared(recipe, shape, found)


def layer_group(recipe: Recipe, shape: ModelShape, page: Page) -> Group:
    """One group of layers with such pages."""
    context = recipe.serving.context or shape.positions
    if page.kind is CacheKind.STATE:
        return Group(releases.state_blocks(recipe, shape, -(-context // page.tokens)), page.tokens)
    if page.kind is CacheKind.WINDOW:
        if shape.architecture in _CHUNKED:
            return Group(-(-min(page.window + releases.in_flight(recipe), context) // page.tokens), page.tokens)
        # A window need not begin where a block does: one block more.
        return Group(-(-min(page.window - 1 + releases.in_flight(recipe), context) // page.tokens) + 1, page.tokens)
    # Decode context parallelism: each rank keeps its share of the tokens
    own = -(-context // (number(flag_value(recipe, "decode-context-parallel-size")) or 1))
    return Group(-(-own // page.tokens), page.tokens)


def _single(recipe: Recipe, shape: ModelShape, found: Sequence[Page]) -> KvBlockPool:
    """Layers that all keep the whole context: one group, each with a page of its own size."""
    return KvBlockPool(sum(page.layers * page.bytes for page in found), (layer_group(recipe, shape, found[0]),))


def _shared(recipe: Recipe, shape: ModelShape, found: Sequence[Page]) -> KvBlockPool | Unknown:
    """Groups of equally many layers (the fewest of any kind), whose pages are the same: they share blocks.

    Latent rows next to others whose pages do not go up: windows are then kept whole, too.
    """
    even = unified(recipe, found)
    if isinstance(even, Unknown):
        if any(page.kind is CacheKind.STATE for page in found) or not releases.has_release(
            recipe, releases.KEEPS_WHOLE
        ):
            return even
        return _single(recipe, shape, sorted(found, key=lambda page: page.kind is CacheKind.WINDOW))
    if not any(page.kind is CacheKind.STATE for page in even):
        even = _merged(even)
    fewest, most = min(page.layers for page in even), max(page.layers for page in even)
    width = most if most < fewest * _NEARLY_EVEN else fewest
    groups = [layer_group(recipe, shape, page) for page in even for _ in range(-(-page.layers // width))]
    return KvBlockPool(width * even[0].bytes, tuple(groups))


def _merged(found: Sequence[Page]) -> tuple[Page, ...]:
    """Layers of one kind with equal pages together: vLLM groups a draft model's layers with the model's own.

    Published for windows next to full attention; models with states next to it hold what two groups give.
    """
    counts: dict[Page, int] = {}
    for page in found:
        alike = replace(page, layers=0)
        counts[alike] = counts.get(alike, 0) + page.layers
    return tuple(replace(page, layers=layers) for page, layers in counts.items())


def _packed(recipe: Recipe, shape: ModelShape, found: Sequence[Page]) -> KvBlockPool:
    """States next to rows of an indexer: a block holds all layers' pages of context, and as many states as fit into it.

    Pooled index rows need a ring of one page for the group that is still open. qsa models have one convolution over
    n-grams before all layers, whose state is in a group of its own.
    """
    whole = [page for page in found if page.kind in WHOLE]
    block = sum(page.layers * page.bytes for page in whole)
    groups = [layer_group(recipe, shape, whole[0])]
    for page in found:
        if page.kind is CacheKind.STATE:
            many = -(-page.layers // max(1, block // page.bytes)) + (shape.index_kind == "qsa")
            groups += [layer_group(recipe, shape, page)] * many
        elif page.kind is CacheKind.WINDOW:
            groups.append(layer_group(recipe, shape, page))
    rings = [Group(1, groups[0].tokens)] if shape.index_ratio > 1 else []
    return KvBlockPool(block, (*groups, *rings))
