"""Levels as llama-benchy sees them: requests of one prompt, output and depth, so many at once."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Row, Run, StatedFigures
from sparkwright.domain.values import dataclass
from sparkwright.domain.workload import Single
from sparkwright.loadgen import figures, samples
from sparkwright.loadgen.validity import by_level

_WINDOW = 1.0  # seconds over which its peak is counted
# The tool's words: rates of all requests together and of each, in tokens per second; times in ms.
RATES = ("pp_throughput", "pp_req_throughput", "tg_throughput", "tg_req_throughput")
PEAKS = ("peak_throughput", "peak_req_throughput")
TIMES = ("ttfr", "est_ppt", "e2e_ttft")
WORDS = (*RATES, *PEAKS, *TIMES)
CONTEXT = "ctx @ "  # how the name of a level begins that only loads a context


@dataclass(frozen=True, slots=True)
class Batch:
    """One level. repeats: the good requests of each. stated: the tool's own figures by word, of an imported level.

    context: the level only loads the context that others find in the cache.
    """

    shape: Single
    places: int
    repeats: tuple[tuple[Row, ...], ...]
    stated: Mapping[str, StatedFigures]
    context: bool = False

    def figures(self) -> Mapping[str, StatedFigures]:
        """Its metrics by WORDS: those that the tool stated, else computed from the requests."""
        if self.stated:
            return self.stated
        return {name: of_values(name, values) for name, values in self._values().items() if values}

    def _values(self) -> dict[str, list[float]]:
        """A value for each request, or for each repeat.

        All three times are those of the first token: rows have no time of a first chunk without one.
        """
        rows = [row for repeat in self.repeats for row in repeat]
        prefill = [_prompt(row) / row.first for row in rows if row.first]
        first = [row.first * 1000 for row in rows if row.first]
        decode = [speed for row in rows if (speed := figures.decode(row))]
        several = self.places > 1
        return {
            "pp_throughput": _each(_prefill_of_all, self.repeats) if several else prefill,
            "pp_req_throughput": prefill,
            "tg_throughput": _each(_decode_of_all, self.repeats) if several else decode,
            "tg_req_throughput": decode,
            "peak_throughput": _each(_peak, self.repeats),
            "peak_req_throughput": _each(_peak, [(row,) for row in rows]),
            "ttfr": first,
            "est_ppt": first,
            "e2e_ttft": first,
        }


def of_values(name: str, values: Sequence[float]) -> StatedFigures:
    mean, deviation = float(np.mean(values)), float(np.std(values))
    return StatedFigures(name, mean, deviation, count=len(values), values=tuple(values))


def batches_of(run: Run) -> list[Batch]:
    """The levels that have such a place; agents and open loops have none. Raises UsageError where none has."""
    found = [_batch(repeats) for repeats in by_level(run) if _fits(repeats[0])]
    if not found:
        raise UsageError(f"{run.id} has no level of single requests at a fixed concurrency, and llama-benchy no other")
    return found


def _fits(level: Level) -> bool:
    shape, pace = level.plan.shape, level.plan.pace
    return isinstance(shape, Single) and not figures.is_open(level.plan) and pace.concurrency > 0


def _batch(repeats: Sequence[Level]) -> Batch:
    shape = repeats[0].plan.shape
    assert isinstance(shape, Single)
    good = tuple(samples.without_errors(samples.counted(level)) for level in repeats)
    stated = {one.name: one for level in repeats for one in level.stated if one.name in WORDS}
    context = repeats[0].plan.name.startswith(CONTEXT)
    return Batch(shape, repeats[0].plan.pace.concurrency, good, stated, context)


def _prompt(row: Row) -> float:
    return float((row.prompt_tokens or row.planned_prompt) - figures.cached(row))


def _each(figure: Callable[[Sequence[Row]], float], repeats: Sequence[Sequence[Row]]) -> list[float]:
    return [value for rows in repeats if rows and (value := figure(rows))]


def _prefill_of_all(rows: Sequence[Row]) -> float:
    """Prompt tokens over the time until the last one's first token."""
    ends = [row.sent + row.first for row in rows if row.first is not None]
    seconds = max(ends) - min(row.sent for row in rows) if ends else 0.0
    return sum(map(_prompt, rows)) / seconds if seconds > 0 else 0.0


def _decode_of_all(rows: Sequence[Row]) -> float:
    """Tokens after each first read, from the first token of all to the last."""
    told = [row for row in rows if row.reads.at]
    if not told:
        return 0.0
    seconds = max(row.sent + row.reads.at[-1] for row in told) - min(row.sent + row.reads.at[0] for row in told)
    return sum(sum(row.reads.tokens[1:]) for row in told) / seconds if seconds > 0 else 0.0


def _peak(rows: Sequence[Row]) -> float:
    """The most tokens in one second; over the whole of what lasted less than that."""
    reads = ((row.sent, zip(row.reads.at, row.reads.tokens, strict=True)) for row in rows)
    events = sorted((sent + at, count) for sent, pairs in reads for at, count in pairs)
    if len(events) < 2:
        return 0.0
    whole = events[-1][0] - events[0][0]
    if whole < _WINDOW:
        return sum(count for _, count in events) / whole if whole > 0 else 0.0
    most, inside, start = 0, 0, 0
    for at, count in events:
        inside += count
        while events[start][0] <= at - _WINDOW:
            inside -= events[start][1]
            start += 1
        most = max(most, inside)
    return most / _WINDOW
