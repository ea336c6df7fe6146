"""Two runs side by side: is the new one better, worse, the same, or undecided?"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sparkwright.domain.run import Level, Run
from sparkwright.domain.summary import METRICS, Comparison, Interval, LevelSummary, MetricComparison, RunSummary
from sparkwright.domain.values import dataclass
from sparkwright.loadgen import bootstrap, comparable, stated, stats, validity
from sparkwright.loadgen.bootstrap import Floats
from sparkwright.loadgen.stats import SampleGroup

EFFECT = 0.03  # smaller differences matter to nobody
TAIL = 100  # values of which a 99th percentile says something
_OF_A_TURN = ("ttft", "decode", "cached_share")
_LATENCIES = ("ttft", "itl", "end_to_end")
_LEFT_OUT = ("ttft_sent", "end_to_end_sent", "ttft_content", "tpot", "total_rate")  # said by others that stay


@dataclass(frozen=True, slots=True)
class _Side:
    """One run's part of a level, and what was drawn of it."""

    group: SampleGroup
    weights: bootstrap.DrawCounts

    def has(self, metric: str) -> bool:
        return metric in self.group.samples or metric in self.group.of_repeats

    def count(self, metric: str) -> int:
        return len(self.group.sample(metric).values)

    def resamples(self, metric: str) -> Floats:
        return bootstrap.resampled(self.group.sample(metric), self.group.drawn(metric, self.weights))

    def values(self, metric: str) -> Floats:
        return bootstrap.statistics(self.group.sample(metric).values)


def compare(base: RunSummary, new: RunSummary, allow_simulated: bool = False) -> Comparison:
    """Metric by metric of the levels that both have. Ratios are of independent resamples of both runs."""
    refused = comparable.refused(base, new, allow_simulated)
    rows = () if refused else tuple(row for row in _rows(base, new) if row.metric not in _spoiled(base, new))
    spoiled = ", ".join(name for name in METRICS if name in _spoiled(base, new) and name not in _LEFT_OUT)
    left_out = (f"not compared, as a client was behind: {spoiled}",) if spoiled and not refused else ()
    return Comparison(base.run.id, new.run.id, rows, refused, (*comparable.comparison_notes(base, new), *left_out))


def _spoiled(base: RunSummary, new: RunSummary) -> frozenset[str]:
    """Metrics that are not valid at any level of either."""
    return frozenset(name for one in (base, new) for level in one.levels for name in level.spoiled)


def _rows(before: RunSummary, after: RunSummary) -> Iterator[MetricComparison]:
    base, new = before.run, after.run
    ours, theirs = ({repeats[0].plan.name: repeats for repeats in validity.by_level(run)} for run in (base, new))
    same_slo = base.workload.slo == new.workload.slo
    for name, other in comparable.paired_levels(base, new):
        if stated.missing(ours[name]) or stated.missing(theirs[other]):
            yield from _stated(_whole(before, name), _whole(after, other))
            continue
        mine, its = _sides(base, ours[name], stats.SEED + 1), _sides(new, theirs[other], stats.SEED + 2)
        for part in (part for part in mine if part in its):
            for metric in (one for one in METRICS if same_slo or one != "goodput"):
                yield from _metric((name, part, metric), mine[part], its[part])


def _whole(summary: RunSummary, name: str) -> LevelSummary:
    return next(level for level in summary.levels if level.plan.name == name and not level.part)


def _stated(base: LevelSummary, new: LevelSummary) -> Iterator[MetricComparison]:
    """Ratios of figures of which one has no interval: whether they differ by more than chance is not known."""
    for name in (one for one in METRICS if one in base.metrics and one in new.metrics and one not in _LEFT_OUT):
        was, now = base.metrics[name], new.metrics[name]
        middle = "median" if was.median and now.median else "mean"
        for statistic in (middle, *(("p99",) if name in _LATENCIES else ())):
            one, other = getattr(was, statistic), getattr(now, statistic)
            if one and other:
                value = other.value / one.value if one.value else None
                ratio = None if value is None else Interval(value, value, value)
                yield MetricComparison(base.plan.name, "", name, statistic, one, other, ratio, "unclear")


def _sides(run: Run, repeats: Sequence[Level], seed: int) -> Mapping[str, _Side]:
    groups = {part: stats.sample_group(run, repeats, part, wanted) for part, wanted in stats.level_parts(repeats)}
    return {part: _Side(group, group.weights(seed)) for part, group in groups.items()}


def _metric(where: tuple[str, str, str], base: _Side, new: _Side) -> Iterator[MetricComparison]:
    _, part, metric = where
    if metric in _LEFT_OUT or not (base.has(metric) and new.has(metric)):
        return
    if part.startswith("turn") and metric not in _OF_A_TURN:
        return
    values, others = base.values(metric), new.values(metric)
    drawn, redrawn = base.resamples(metric), new.resamples(metric)
    least = min(base.count(metric), new.count(metric))
    for place, statistic in enumerate(bootstrap.STATISTICS):
        if statistic == "median" or (statistic == "p99" and metric in _LATENCIES and least >= TAIL):
            was = stats.interval_of(values[place], drawn[:, place])
            now = stats.interval_of(others[place], redrawn[:, place])
            ratio = _ratio(values[place], others[place], drawn[:, place], redrawn[:, place])
            yield MetricComparison(*where, statistic, was, now, ratio, verdict(metric, was, now, ratio, least))


def _ratio(base: float, new: float, drawn: Floats, redrawn: Floats) -> Interval | None:
    count = min(len(drawn), len(redrawn))
    divisors = drawn[:count]
    if not base or not np.all(divisors):
        return None
    return stats.interval_of(new / base, redrawn[:count] / divisors)


def verdict(metric: str, base: Interval, new: Interval, ratio: Interval | None, count: int) -> str:
    """count: values of the run that has fewer: one alone shows nothing of its spread."""
    if base == new and count > 1:
        return "same"
    if ratio is None or count < 2:
        return "unclear"
    if ratio.low >= 1.0 - EFFECT and ratio.high <= 1.0 + EFFECT:
        return "same"
    if ratio.low <= 1.0 <= ratio.high or abs(ratio.value - 1.0) < EFFECT:
        return "unclear"
    return "better" if (ratio.value > 1.0) == METRICS[metric][1] else "worse"
