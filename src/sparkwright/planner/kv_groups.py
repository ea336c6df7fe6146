"""vLLM's groups: layers that share block tables, and what one block of the shared pool takes."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.domain.facts import Unknown
from sparkwright.domain.kv import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.planner.kv_pages import WHOLE, Page, pages, unified
from sparkwright.planner.kv_release import in_flight, pads_pages, state_blocks
from sparkwright.planner.limits import flag, number

_NEARLY_EVEN = 1.5  # below this ratio of most to fewest layers, groups are padded to the most


@dataclass(frozen=True, slots=True)
class Group:
    """blocks: that a sequence of full length holds. tokens: of one page."""

    blocks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Pool:
    """block: bytes of one block.

    counted: blocks of a full sequence as the engine's line counts them, 0: as many as it holds. checked: bytes of a
    block as the engine counts what a request needs, 0: as large as it is.
    """

    block: int
    groups: tuple[Group, ...]
    counted: int = 0
    checked: int = 0

    @property
    def held(self) -> int:
        """Blocks of one full sequence."""
        return sum(group.blocks for group in self.groups)

    @property
    def tokens(self) -> int:
        """Tokens of the smallest page."""
        return min(group.tokens for group in self.groups)


def grouped(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> Pool | Unknown:
    """Groups of one rank's layers for sequences of the recipe's context."""
    found = pages(recipe, shape, kinds)
    names = {page.kind for page in found}
    if names <= set(WHOLE):
        return _single(recipe, shape, found)
    if {CacheKind.STATE, CacheKind.INDEX} <= names:
        return _packed(recipe, shape, found)
    return _shared(recipe, shape, found)


def group(recipe: Recipe, shape: ModelShape, page: Page) -> Group:
    """One group of layers with such pages."""
    context = recipe.serving.context or shape.positions
    if page.kind is CacheKind.STATE:
        return Group(state_blocks(recipe, shape, -(-context // page.tokens)), page.tokens)
    if page.kind is CacheKind.WINDOW:
        # A window need not begin where a block does: one block more.
        return Group(-(-min(page.window - 1 + in_flight(recipe), context) // page.tokens) + 1, page.tokens)
    own = -(-context // _ranks_of_context(recipe))
    return Group(-(-own // page.tokens), page.tokens)


def _ranks_of_context(recipe: Recipe) -> int:
    """Decode context parallelism: each rank keeps its share of the tokens."""
    return number(flag(recipe, "decode-context-parallel-size")) or 1


def _single(recipe: Recipe, shape: ModelShape, found: Sequence[Page]) -> Pool:
    """Layers that all keep the whole context: one group, each with a page of its own size."""
    return Pool(sum(page.layers * page.bytes for page in found), (group(recipe, shape, found[0]),))


def _shared(recipe: Recipe, shape: ModelShape, found: Sequence[Page]) -> Pool | Unknown:
    """Groups of equally many layers (the fewest of any kind), whose pages are the same: they share blocks.

    Latent rows beside others whose pages do not go up: windows are then kept whole, too.
    """
    even = unified(recipe, found)
    if isinstance(even, Unknown):
        if any(page.kind is CacheKind.STATE for page in found) or not pads_pages(recipe):
            return even
        return _single(recipe, shape, sorted(found, key=lambda page: page.kind is CacheKind.WINDOW))
    fewest, most = min(page.layers for page in even), max(page.layers for page in even)
    width = most if most < fewest * _NEARLY_EVEN else fewest
    groups = [group(recipe, shape, page) for page in even for _ in range(-(-page.layers // width))]
    return Pool(width * even[0].bytes, tuple(groups))


def _packed(recipe: Recipe, shape: ModelShape, found: Sequence[Page]) -> Pool:
    """States beside rows of an indexer: a block holds all layers' pages of context, and as many states as fit into it.

    Pooled index rows need a ring of one page for the group that is still open. qsa models have one convolution over
    n-grams before all layers, whose state is in a group of its own.
    """
    whole = [page for page in found if page.kind in WHOLE]
    block = sum(page.layers * page.bytes for page in whole)
    groups = [group(recipe, shape, whole[0])]
    for page in found:
        if page.kind is CacheKind.STATE:
            many = -(-page.layers // max(1, block // page.bytes)) + (shape.index_kind == "qsa")
            groups += [group(recipe, shape, page)] * many
        elif page.kind is CacheKind.WINDOW:
            groups.append(group(recipe, shape, page))
    rings = [Group(1, groups[0].tokens)] if shape.index_ratio > 1 else []
    return Pool(block, (*groups, *rings))
