"""vLLM's pages: how many tokens of a layer make one, and how many bytes that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from sparkwright.domain.facts import Unknown
from sparkwright.domain.kv import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.planner.kv_release import aligns_mla, checkpoint_tokens, keeps_history, pads_pages
from sparkwright.planner.limits import flag, number

WHOLE = (CacheKind.FULL, CacheKind.MLA, CacheKind.INDEX, CacheKind.COMPRESSED)  # kinds that keep the whole context
_DEFAULT = 16
_V4 = 256
_SPARSE = {"": 64, "dsa": 64, "msa": 128, "qsa": 16}  # what each indexer's kernel asks for
# Attention backends that take no blocks of 16 (their get_supported_kernel_block_sizes).
_BACKENDS = {"FLASHMLA": 64, "CUTLASS_MLA": 128, "FLASHINFER_MLA": 32, "TOKENSPEED_MLA": 32, "FLASHMLA_SPARSE": 64}
_MLA_HYBRID = 128
_CHUNK = 128  # of Mamba-2's scan, where a state is kept at the end of every block
_V4_ALIGN = 576  # FlashMLA's; pages of V4 are rounded up to it


@dataclass(frozen=True, slots=True)
class Page:
    """Layers whose page is the same. tokens: of one page. bytes: of one page and layer."""

    kind: CacheKind
    layers: int
    tokens: int
    bytes: int
    window: int = 0


def pages(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> tuple[Page, ...]:
    """Of every kind, with states padded to a page of attention."""
    block = block_size(recipe, shape, kinds)
    rows = _attention_rows(kinds)
    padded = int(block * max(rows)) if rows else 0
    return tuple(_page(kind, block, padded, bool(shape.compress)) for kind in kinds)


def block_size(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> int:
    """Tokens a block: the recipe's or the backend's, raised until attention's page holds a state.

    (vLLM, platforms/interface.py: _align_hybrid_block_size.)
    """
    base = number(flag(recipe, "block-size")) or _usual(recipe, shape)
    state = max((kind.state for kind in kinds if kind.kind is CacheKind.STATE), default=0)
    rows = _attention_rows(kinds)
    if not state or not rows:
        return base
    step = max(base, _MLA_HYBRID) if shape.latent and aligns_mla(recipe) else base
    step = max(step, _CHUNK) if keeps_history(recipe, shape) else lcm(step, checkpoint_tokens(recipe, shape) or 1)
    return max(base, step * -(-state // int(step * max(rows))))


def unified(recipe: Recipe, found: Sequence[Page]) -> tuple[Page, ...] | Unknown:
    """All pages as large as the largest: more tokens in the smaller ones, or padding where that does not go up."""
    largest = max(page.bytes for page in found)
    made = tuple(_grown(page, largest) for page in found)
    uneven = [page for page in made if page.bytes != largest]
    if uneven and (not pads_pages(recipe) or any(page.kind is CacheKind.MLA for page in uneven)):
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
    return _BACKENDS.get(str(flag(recipe, "attention-backend")).upper(), _DEFAULT)


def _page(kind: CacheLayers, block: int, padded: int, aligned: bool) -> Page:
    if kind.kind is CacheKind.STATE:
        return Page(kind.kind, kind.layers, block, max(kind.state, padded))
    tokens = kind.block or block
    entries = tokens if kind.kind is CacheKind.WINDOW else max(1, tokens // kind.ratio)
    size = int(entries * kind.row)
    size = -(-size // _V4_ALIGN) * _V4_ALIGN if aligned else size
    return Page(kind.kind, kind.layers, tokens, size, kind.window)
