"""What a decoding step and a prompt read of the cache: bytes, scores, and for a lightning indexer arithmetic."""

from dataclasses import dataclass

from sparkwright.domain.kv import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape

Cache = tuple[CacheLayers, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one sequence at one depth on one rank. bytes: of rows. state: bytes of states, which are also written.

    flop: of the indexer, for each token that is decoded or verified.
    """

    bytes: float
    state: float
    flop: float


@dataclass(frozen=True, slots=True)
class _Rows:
    """How many of these layers read only rows that an indexer picked, and how many rows those and the others read."""

    sparse: int
    picked: float
    whole: int
    rows: float


def reading(cache: Cache, shape: ModelShape, depth: float) -> Reading:
    """Every kind reads what it must: rows of all tokens, of the window, or the tokens that an indexer picked."""
    state = sum(2.0 * one.state * one.layers for one in cache if one.kind is CacheKind.STATE)
    scanned = sum(one.layers * _rows(one, depth) for one in cache if one.kind is CacheKind.INDEX)
    read = ((one.row, _read(one, cache, shape, depth)) for one in cache if one.kind is not CacheKind.STATE)
    return Reading(
        bytes=sum(row * (r.sparse * r.picked + r.whole * r.rows) for row, r in read),
        state=state,
        flop=scanned * 2.0 * shape.index_heads * shape.index_dim,
    )


def attended(cache: Cache, shape: ModelShape, depth: float) -> tuple[float, float]:
    """Scores (query x row) that one token of a prompt asks for at a depth: of picked rows, and of all others."""
    kinds = (CacheKind.INDEX, CacheKind.STATE)
    read = [_read(one, cache, shape, depth) for one in cache if one.kind not in kinds]
    return sum(r.sparse * r.picked for r in read), sum(r.whole * r.rows for r in read)


def _read(one: CacheLayers, cache: Cache, shape: ModelShape, depth: float) -> _Rows:
    sparse, rows = _sparse(one, cache, shape), _rows(one, depth)
    return _Rows(sparse, min(rows, shape.index_topk), one.layers - sparse, rows)


def _sparse(one: CacheLayers, cache: Cache, shape: ModelShape) -> int:
    """MLA layers all read what is picked, as they may share an indexer; others as many as there are indexers."""
    index = [other for other in cache if other.kind is CacheKind.INDEX]
    if not index or not shape.index_topk:
        return 0
    if one.kind is CacheKind.MLA:
        return one.layers
    own = one.kind is CacheKind.FULL or (one.kind is CacheKind.COMPRESSED and one.ratio == index[0].ratio)
    return min(one.layers, sum(other.layers for other in index)) if own else 0


def _rows(one: CacheLayers, depth: float) -> float:
    return (min(depth, one.window) if one.window else depth) / one.ratio
