"""vLLM's groups for DeepSeek V4: entries of several sizes for the whole context, and windows beside all of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkwright.domain.kv import CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.planner.kv_groups import Group, Pool, group
from sparkwright.planner.kv_pages import WHOLE, Page, pages
from sparkwright.planner.kv_release import checks_blocks, overlays_groups, packs_blocks


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


def layered(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> Pool:
    """Whole-context pages in one group; windows in groups of about as many layers as that has of one size."""
    found = pages(recipe, shape, kinds)
    whole = [page for page in found if page.kind in WHOLE]
    windows: dict[tuple[int, int], list[Page]] = defaultdict(list)
    for page in found:
        if page.kind not in WHOLE:
            windows[page.tokens, page.window].append(page)
    first = _Part(group(recipe, shape, whole[0]), whole)
    width = _least_padding([first.widest, *(some[0].layers for some in windows.values())], first.widest)
    parts = [first, *(part for some in windows.values() for part in _even(recipe, shape, some, width))]
    return _overlaid(recipe, parts) if overlays_groups(recipe) else _padded(parts, packs_blocks(recipe))


def _least_padding(counts: Sequence[int], least: int) -> int:
    """The width of groups, at least so many layers, that leaves fewest places empty; of equals the largest."""
    widths = range(least, max(counts) + 1)
    return min(widths, key=lambda width: (sum(-count % width for count in counts), -width))


def _even(recipe: Recipe, shape: ModelShape, some: Sequence[Page], width: int) -> list[_Part]:
    """Pages of one window over groups of at most so many layers."""
    many, one = -(-some[0].layers // width), group(recipe, shape, some[0])
    return [_Part(one, [replace(page, layers=-(-(page.layers - nth) // many)) for page in some]) for nth in range(many)]


def _overlaid(recipe: Recipe, parts: Sequence[_Part]) -> Pool:
    """Groups lie over each other: a block is as large as the largest needs."""
    sizes = {page.bytes for page in parts[0].pages}
    checked = 0 if checks_blocks(recipe) else sum(sizes) * max(part.widest for part in parts)
    return Pool(max(part.bytes for part in parts), tuple(part.group for part in parts), checked=checked)


def _padded(parts: Sequence[_Part], packed: bool) -> Pool:
    """Pages of windows are padded to the next size of the whole-context group, and all groups have the same places.

    packed (0.24.0): each size as often as the widest group has it; before, every size as often as the widest of all.
    Concurrency is counted in bytes of each group's own pages, a little less than what the blocks take.
    """
    sizes = sorted({page.bytes for page in parts[0].pages})
    raised = [_Part(part.group, [_raised(page, sizes) for page in part.pages]) for part in parts]
    most = {size: max(part.layers(size) for part in raised) for size in sizes}
    block = sum(size * (most[size] if packed else max(most.values())) for size in sizes)
    taken = sum(part.group.blocks * part.bytes for part in raised)
    return Pool(block, tuple(part.group for part in parts), counted=-(-taken // raised[0].bytes))


def _raised(page: Page, sizes: Sequence[int]) -> Page:
    return replace(page, bytes=next((size for size in sizes if size >= page.bytes), page.bytes))
