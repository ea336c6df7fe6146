"""What the server's own counters say of a level. The words are those of engines/metrics.py; what is absent stays so."""

from collections.abc import Sequence
from itertools import pairwise

from sparkwright.domain.run import Level, Scrape

GAUGES = ("requests_running", "requests_waiting", "kv_cache_usage")
COUNTERS = ("preemptions_total", "prompt_tokens_total", "generation_tokens_total", "prefix_cache_hits_total")
_ALL = (*COUNTERS, "prefix_cache_queries_total", "accepted_tokens_total", "drafts_total")


def increase(scrapes: Sequence[Scrape], word: str) -> float | None:
    """From the first to the last scrape that has it; None with fewer than two, or when it fell: a restart."""
    values = [scrape.figures[word] for scrape in scrapes if word in scrape.figures]
    if len(values) < 2 or _fell(values):
        return None
    return values[-1] - values[0]


def restarted(scrapes: Sequence[Scrape]) -> bool:
    """A counter that falls has begun anew."""
    return any(_fell([scrape.figures[word] for scrape in scrapes if word in scrape.figures]) for word in _ALL)


def _fell(values: Sequence[float]) -> bool:
    return any(after < before for before, after in pairwise(values))


def acceptance(scrapes: Sequence[Scrape]) -> float | None:
    """Tokens that a step gives under speculation: its own and the drafted ones that were accepted."""
    accepted, drafts = increase(scrapes, "accepted_tokens_total"), increase(scrapes, "drafts_total")
    return 1.0 + accepted / drafts if accepted is not None and drafts else None


def figures(levels: Sequence[Level]) -> dict[str, float]:
    """Of all repeats: the most of gauges, the sum of what counters grew by, shares of such sums, least free memory."""
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
    """While it was measured: the first and the last scrape are of before and after."""
    told = (scrape.figures for level in levels for scrape in level.scrapes[1:-1])
    return max((figures[word] for figures in told if word in figures), default=None)


def _total(levels: Sequence[Level], word: str) -> float | None:
    grown = [increase(level.scrapes, word) for level in levels]
    known = [value for value in grown if value is not None]
    return sum(known) if known and len(known) == len(grown) else None
