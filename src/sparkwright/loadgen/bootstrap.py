"""The uncertainty of figures: the same statistics over resamples of the repeats, and of the requests in each.

Requests are drawn whole, so that the tokens of one answer stay together: they are anything but independent. A resample
is stored as how often each request was drawn, which makes a statistic of it a weighted one.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sparkwright.domain.values import dataclass

Floats = NDArray[np.float64]
Counts = NDArray[np.float32]

STATISTICS = ("mean", "median", "p90", "p99")
_SHARES = np.array([0.5, 0.9, 0.99])
_LOW, _HIGH = 2.5, 97.5  # percentiles of the resamples: a 95 % interval
# (requests up to, resamples): fewer suffice, and are affordable, where there are many.
_RESAMPLES = ((2_000, 1000), (20_000, 400))
_FEWEST = 200
_EXACT = 2_000  # values; above, they are gathered in bins, narrow ones near the end where p99 is
_BINS, _TAIL = 256, 64
_SLICE = 8192  # requests whose bins are held at once
_AT_ONCE = 2_000_000  # draws


@dataclass(frozen=True, slots=True)
class RepeatSample:
    """Values of one metric, and to which request, or repeat, of a group each belongs."""

    values: Floats
    owners: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class DrawCounts:
    """Draw counts of each request, and of each repeat: a line for each resample."""

    requests: Counts
    repeats: Counts


def weights(sizes: Sequence[int], seed: int) -> DrawCounts:
    """sizes: requests of each repeat; they follow each other in the group."""
    rng = np.random.default_rng(seed)
    total, repeats = sum(sizes), len(sizes)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(int)
    count = next((count for most, count in _RESAMPLES if total <= most), _FEWEST)
    drawn, chosen = np.zeros((count, total), np.float32), np.zeros((count, repeats), np.float32)
    picked = rng.integers(0, max(repeats, 1), (count, repeats))
    for slot, repeat in product(range(repeats), repeat=2):
        lines = np.flatnonzero(picked[:, slot] == repeat)
        chosen[lines, repeat] += 1
        for some in np.array_split(lines, max(1, len(lines) * sizes[repeat] // _AT_ONCE)):
            drawn[some, starts[repeat] : starts[repeat + 1]] += _draws(rng, len(some), sizes[repeat])
    return DrawCounts(drawn, chosen)


def _draws(rng: np.random.Generator, lines: int, size: int) -> NDArray[np.intp]:
    """Draw counts of `size` items, drawn `size` times with replacement in each line."""
    if not lines * size:
        return np.zeros((lines, size), np.intp)
    places = rng.integers(0, size, (lines, size)) + np.arange(0, lines * size, size)[:, None]
    return np.bincount(places.ravel(), minlength=lines * size).reshape(lines, size)


def statistics(values: Floats) -> Floats:
    """STATISTICS of the values, quantiles with linear interpolation."""
    return np.concatenate(([values.mean()], np.quantile(values, _SHARES)))


def resampled(sample: RepeatSample, drawn: Counts) -> Floats:
    """STATISTICS of each resample, one line each; resamples without a single value are left out."""
    order = np.argsort(sample.values, kind="stable")
    values, owners = sample.values[order], sample.owners[order]
    if len(values) > _EXACT:
        return _binned(values, owners, drawn)
    counts = drawn[:, owners].astype(np.float64)
    return _weighted(values, counts[counts.any(axis=1)])


def _weighted(values: Floats, counts: Floats) -> Floats:
    """The `statistics` of the sorted values, each as often as counted; one line for each line of counts."""
    ends = counts.cumsum(axis=1)
    total = ends[:, -1:]
    places = (total - 1.0) * _SHARES
    below = np.floor(places)
    both = np.hstack((below, np.minimum(below + 1.0, total - 1.0)))
    index = np.stack([(ends <= place[:, None]).sum(axis=1) for place in both.T], axis=1)
    low, high = values[index[:, : len(_SHARES)]], values[index[:, len(_SHARES) :]]
    return np.hstack((counts @ values[:, None] / total, low + (high - low) * (places - below)))


def _binned(values: Floats, owners: NDArray[np.intp], drawn: Counts) -> Floats:
    """The result of `resampled` for many sorted values: they are counted in bins, each with its mean in its middle."""
    size = len(values)
    grid = np.concatenate((np.linspace(0, size, _BINS), np.linspace(0.95 * size, size, _TAIL)))
    first = np.unique(grid.astype(int))[:-1]
    means = np.add.reduceat(values, first) / np.diff(first, append=size)
    counts = _counted(owners, first, drawn)
    ends = np.cumsum(counts, axis=1)
    lines = [
        np.concatenate(([means @ line / end[-1]], np.interp(_SHARES * (end[-1] - 1.0) + 0.5, end - line / 2, means)))
        for line, end in zip(counts, ends, strict=True)
        if end[-1]
    ]
    return np.array(lines).reshape(len(lines), len(STATISTICS))


def _counted(owners: NDArray[np.intp], first: NDArray[np.intp], drawn: Counts) -> Floats:
    """Draw counts of each bin in each resample; first: the beginning of each bin among the owners."""
    if len(owners) <= drawn.shape[1]:
        return np.add.reduceat(drawn[:, owners], first, axis=1).astype(np.float64)
    bins = np.repeat(np.arange(len(first), dtype=np.int32), np.diff(first, append=len(owners)))
    counts = np.zeros((len(drawn), len(first)))
    for start in range(0, drawn.shape[1], _SLICE):
        here = (owners >= start) & (owners < start + _SLICE)
        width = min(_SLICE, drawn.shape[1] - start)
        flat = np.bincount((owners[here] - start) * len(first) + bins[here], minlength=width * len(first))
        counts += drawn[:, start : start + width] @ flat.reshape(width, -1).astype(np.float32)
    return counts


def interval(value: float, resamples: Floats) -> tuple[float, float]:
    """(low, high) around the value, of one statistic's resamples."""
    if not len(resamples):
        return value, value
    low, high = np.percentile(resamples, (_LOW, _HIGH))
    return min(float(low), value), max(float(high), value)
