"""The values behind each metric, gathered from rows."""

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from sparkwright.domain.run import Level, Row, Scrape
from sparkwright.domain.workload import Slo
from sparkwright.loadgen import figures, slo
from sparkwright.loadgen.bootstrap import RepeatSample

GAUGES = ("requests_running", "requests_waiting", "kv_cache_usage")
COUNTERS = ("preemptions_total", "prompt_tokens_total", "generation_tokens_total", "prefix_cache_hits_total")
_ALL = (*COUNTERS, "prefix_cache_queries_total", "accepted_tokens_total", "drafts_total")


def increase(scrapes: Sequence[Scrape], word: str) -> float | None:
    """The increase from the first to the last scrape that has it; None with fewer than two, or after a fall: a
    restart."""
    values = [scrape.figures[word] for scrape in scrapes if word in scrape.figures]
    return values[-1] - values[0] if len(values) > 1 and not _fell(scrapes, word) else None


def restarted(scrapes: Sequence[Scrape]) -> bool:
    """A counter that falls was reset."""
    return any(_fell(scrapes, word) for word in _ALL)


def _fell(scrapes: Sequence[Scrape], word: str) -> bool:
    values = [scrape.figures[word] for scrape in scrapes if word in scrape.figures]
    return any(after < before for before, after in pairwise(values))


def acceptance(scrapes: Sequence[Scrape]) -> float | None:
    """Tokens that a step gives under speculation: its own and the drafted ones that were accepted."""
    accepted, drafts = increase(scrapes, "accepted_tokens_total"), increase(scrapes, "drafts_total")
    return 1.0 + accepted / drafts if accepted is not None and drafts else None


def engine_figures(levels: Sequence[Level]) -> dict[str, float]:
    """Engine figures over all repeats: maxima of gauges, summed growth of counters, shares of such sums, least free
    memory."""
    found = {word: most for word in GAUGES if (most := _most(levels, word)) is not None}
    found |= {word: total for word in COUNTERS if (total := _total(levels, word)) is not None}
    hits, queries = _total(levels, "prefix_cache_hits_total"), _total(levels, "prefix_cache_queries_total")
    if hits is not None and queries:
        found["prefix_hit_share"] = hits / queries
    accepted, drafts = _total(levels, "accepted_tokens_total"), _total(levels, "drafts_total")
    if accepted is not None and drafts:
        found["acceptance"] = 1.0 + accepted / drafts
    free = [float(size) for level in levels for scrape in level.scrapes for size in scrape.memory.values()]
    return {**found, "memory_available_least": min(free)} if free else found


def _most(levels: Sequence[Level], word: str) -> float | None:
    """The maximum during the measurement: the first and the last scrape are from before and after."""
    told = (scrape.figures for level in levels for scrape in level.scrapes[1:-1])
    return max((figures[word] for figures in told if word in figures), default=None)


def _total(levels: Sequence[Level], word: str) -> float | None:
    grown = [increase(level.scrapes, word) for level in levels]
    known = [value for value in grown if value is not None]
    return sum(known) if known and len(known) == len(grown) else None


# Tools whose results have no time of a single token: what is imported of them has a first and a last one.
TOTALS_ONLY = ("llama-benchy", "llama-benchy table")


def counted(level: Level) -> tuple[Row, ...]:
    """The rows for statistics: no warm-up, no noise."""
    return tuple(row for row in level.rows if row.counted and not row.warmup)


def without_errors(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if not row.error)


def of_requests(rows: Sequence[Row], open_loop: bool, token_times: bool) -> Mapping[str, RepeatSample]:
    """Metric -> its values over good requests. token_times: the rows know when each token came."""
    found: dict[str, RepeatSample] = {}
    for name, figure in figures.per_request(open_loop).items():
        found[name] = _sample([(place, value) for place, row in enumerate(rows) if (value := figure(row)) is not None])
    if token_times:
        found["itl"] = _itl(rows)
    return {name: sample for name, sample in found.items() if len(sample.values)}


def _sample(pairs: Sequence[tuple[int, float]]) -> RepeatSample:
    """pairs: (owner, value)."""
    values = np.fromiter((value for _, value in pairs), np.float64, len(pairs))
    return RepeatSample(values, np.fromiter((place for place, _ in pairs), np.intp, len(pairs)))


def _itl(rows: Sequence[Row]) -> RepeatSample:
    """A read with n tokens after a gap g gives n values of g/n; of the first read's tokens no gap is known."""
    sizes = np.fromiter((len(row.reads.at) for row in rows), np.intp, len(rows))
    total = int(sizes.sum())
    at = np.fromiter(chain.from_iterable(row.reads.at for row in rows), np.float64, total)
    tokens = np.fromiter(chain.from_iterable(row.reads.tokens for row in rows), np.int32, total)
    owners = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    later = np.ones(total, bool)
    later[np.cumsum(sizes)[sizes > 0] - sizes[sizes > 0]] = False
    later &= tokens > 0
    gaps = np.diff(at, prepend=0.0)[later] / tokens[later]
    return RepeatSample(np.repeat(gaps, tokens[later]), np.repeat(owners[later], tokens[later]))


def of_repeats(levels: Sequence[Level], limits: Slo | None) -> Mapping[str, RepeatSample]:
    """Metric -> one value of each repeat: rates of the whole level, and what only the server counts."""
    told = [_of_repeat(level, limits) for level in levels]
    names = dict.fromkeys(chain.from_iterable(told))
    return {name: _sample([(place, one[name]) for place, one in enumerate(told) if name in one]) for name in names}


def _of_repeat(level: Level, limits: Slo | None) -> dict[str, float]:
    rows = counted(level)
    well, seconds = without_errors(rows), seconds_spanned(rows)
    found: dict[str, float] = {}
    if seconds > 0:
        found["request_rate"] = len(well) / seconds
        found |= {name: count / seconds for name, count in _tokens(well).items()}
        if limits and slo.judged(rows, limits):
            open_loop = figures.is_open(level.plan)
            found["goodput"] = sum(slo.meets_slo(row, limits, open_loop) for row in rows) / seconds
    accepted = acceptance(level.scrapes)
    return found if accepted is None else {**found, "acceptance": accepted}


def _tokens(rows: Sequence[Row]) -> dict[str, int]:
    """The tokens, if every request has its count: a sum over some of them would be too small."""
    output = [row.output_tokens for row in rows if row.output_tokens is not None]
    prompt = [row.prompt_tokens for row in rows if row.prompt_tokens is not None]
    found = {"output_rate": sum(output)} if rows and len(output) == len(rows) else {}
    return {**found, "total_rate": sum(output) + sum(prompt)} if found and len(prompt) == len(rows) else found


def seconds_spanned(rows: Sequence[Row]) -> float:
    """Seconds from when the first was to be sent until the last one's end."""
    ends = [row.sent + row.end for row in rows if row.end is not None]
    return max(ends) - min(min(row.intended, row.sent) for row in rows) if ends else 0.0
