"""A run's rows as figures: each metric of each level, with how sure it is."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from sparkwright.domain.run import Level, Row, Run
from sparkwright.domain.summary import METRICS, Interval, LevelSummary, Metric, RunSummary
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.workload import Agent
from sparkwright.loadgen import bootstrap, figures, samples, slo, stated, validity
from sparkwright.loadgen.bootstrap import Counts, Floats, RepeatSample

SEED = 20261122
_TURNS = 64
Wanted = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """A part of a level: good requests of all repeats one after another, and how many each repeat has."""

    samples: Mapping[str, RepeatSample]
    of_repeats: Mapping[str, RepeatSample]
    sizes: tuple[int, ...]

    def weights(self, seed: int) -> bootstrap.DrawCounts:
        return bootstrap.weights(self.sizes, seed)

    def sample(self, name: str) -> RepeatSample:
        return self.samples[name] if name in self.samples else self.of_repeats[name]

    def drawn(self, name: str, weights: bootstrap.DrawCounts) -> Counts:
        return weights.requests if name in self.samples else weights.repeats


def summarize(run: Run) -> RunSummary:
    """Compute everything from the rows; what another tool stated is taken as it is.

    Levels are in the order of their first repeat, parts behind their level.
    """
    pairs = ((repeats, part) for repeats in validity.by_level(run) for part in level_parts(repeats))
    levels = tuple(_summary(run, repeats, *part) for repeats, part in pairs)
    if validity.always_late(run):
        counts = {repeats[0].plan.name: validity.steady(repeats) for repeats in validity.by_level(run)}
        levels = tuple(_spoiled(level, counts[level.plan.name]) for level in levels)
    return RunSummary(run, levels, validity.invalid(run), _best_rate(run, levels))


def _spoiled(level: LevelSummary, counts: Sequence[str]) -> LevelSummary:
    return replace(level, spoiled=tuple(name for name in level.metrics if name not in counts))


def level_parts(repeats: Sequence[Level]) -> Iterator[tuple[str, Wanted]]:
    """The parts of a level: '' for all, then `cold` and `warm` if there are both, then each turn of a conversation."""
    rows = [row for level in repeats for row in samples.counted(level)]
    yield "", lambda _: True
    if len({row.planned_cached > 0 for row in rows}) == 2:
        yield "cold", lambda row: not row.planned_cached
        yield "warm", lambda row: row.planned_cached > 0
    turns = sorted({row.turn for row in rows})
    if len(turns) > 1 or isinstance(repeats[0].plan.shape, Agent):
        yield from ((f"turn {turn + 1}", lambda row, turn=turn: row.turn == turn) for turn in turns[:_TURNS])


def sample_group(run: Run, repeats: Sequence[Level], part: str, wanted: Wanted) -> SampleGroup:
    """The values of one part. Rates of a level belong to all of it."""
    chosen = [[row for row in samples.counted(level) if wanted(row)] for level in repeats]
    well = [samples.without_errors(rows) for rows in chosen]
    flat = [row for rows in well for row in rows]
    found = samples.of_requests(flat, figures.is_open(repeats[0].plan), run.imported not in samples.TOTALS_ONLY)
    whole = {} if part else samples.of_repeats(repeats, run.workload.slo)
    return SampleGroup(found, whole, tuple(map(len, well)))


def _summary(run: Run, repeats: Sequence[Level], part: str, wanted: Wanted) -> LevelSummary:
    rows = [row for level in repeats for row in samples.counted(level) if wanted(row)]
    well = samples.without_errors(rows)
    made = sample_group(run, repeats, part, wanted)
    weights = made.weights(SEED)
    known = [name for name in METRICS if name in made.samples or name in made.of_repeats]
    doubts = [doubt for level in repeats for doubt in (*level.doubts, *validity.doubts(level))]
    totals = [level.totals for level in repeats if level.totals]
    errors = Counter(row.kind or "error" for row in rows if row.error)
    for each in totals:
        errors.update(each.failed)
    found = {name: _metric(name, made, weights) for name in known}
    return LevelSummary(
        plan=repeats[0].plan,
        part=part,
        repeats=len(repeats),
        sent=len(rows) + sum(one.sent for one in totals),
        good=len(well) + sum(one.good for one in totals),
        tokens=sum(row.output_tokens or 0 for row in well) + sum(one.output_tokens for one in totals),
        seconds=sum(
            samples.seconds_spanned(samples.counted(level)) or (level.totals and level.seconds) or 0
            for level in repeats
        ),
        metrics=stated.metrics(repeats, found, part),
        errors=dict(errors),
        met=slo.share_in_slo(rows, run.workload.slo, figures.is_open(repeats[0].plan)) if run.workload.slo else None,
        doubts=tuple(dict.fromkeys((*validity.client_delays(repeats), *doubts))),
        server={} if part else samples.engine_figures(repeats),
        notes=validity.figure_notes(run, repeats),
    )


def _metric(name: str, made: SampleGroup, weights: bootstrap.DrawCounts) -> Metric:
    sample = made.sample(name)
    resamples = bootstrap.resampled(sample, made.drawn(name, weights))
    values = bootstrap.statistics(sample.values)
    mean, median, p90, p99 = (interval_of(values[n], resamples[:, n]) for n in range(len(bootstrap.STATISTICS)))
    least, most = float(sample.values.min()), float(sample.values.max())
    return Metric(name, len(sample.values), mean, median, p90, p99, least, most, _spread(sample, made, name))


def interval_of(value: float, resamples: Floats) -> Interval:
    return Interval(float(value), *bootstrap.interval(float(value), resamples))


def _spread(sample: RepeatSample, made: SampleGroup, name: str) -> float:
    """(most - least) / median of the repeats' medians."""
    medians = list(sample.values)
    if name in made.samples:
        repeat = np.searchsorted(np.cumsum(made.sizes), sample.owners, side="right")
        medians = [float(np.median(sample.values[repeat == one])) for one in np.unique(repeat)]
    middle = float(np.median(medians))
    return float(max(medians) - min(medians)) / middle if middle else 0.0


def _best_rate(run: Run, levels: Sequence[LevelSummary]) -> float | None:
    """The best rate of a search for goodput."""
    limits = run.workload.slo
    if not run.workload.search or not limits:
        return None
    whole = [one for one in levels if not one.part and one.met is not None]
    return slo.highest_rate((one.plan.pace.rate, (one.met or 0.0) >= limits.share) for one in whole)
