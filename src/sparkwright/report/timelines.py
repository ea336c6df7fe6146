"""Single requests as they went: tokens over time, of the most informative requests of each level."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from sparkwright.domain.run import Level, Row, Run
from sparkwright.domain.values import dataclass
from sparkwright.report.texts import seconds

# Points of all timelines of a page together: about 12 bytes each.
_POINTS = 12_000
_LEAST, _MOST = 40, 400


@dataclass(frozen=True, slots=True)
class Timeline:
    """The timeline of a request. at: seconds since it was sent; total: tokens until then. label: the reason of its
    choice, and its figures."""

    run: int
    level: str
    label: str
    at: tuple[float, ...]
    total: tuple[int, ...]
    exact: bool


def timelines(runs: Sequence[Run]) -> list[Timeline]:
    """Thinned evenly, with both sides of the longest pauses kept."""
    chosen = [
        (number, level, why, row)
        for number, run in enumerate(runs)
        for level in run.levels
        if not any(level.plan.name == other.plan.name and other.repeat < level.repeat for other in run.levels)
        for why, row in telling(level)
    ]
    most = max(_LEAST, min(_MOST, _POINTS // max(len(chosen), 1)))
    return [_timeline(number, level, _label(why, row), row, most) for number, level, why, row in chosen]


def telling(level: Level) -> list[tuple[str, Row]]:
    """The typical request, the slowest first token, the longest pause, and one that broke in the middle."""
    rows = [row for row in level.rows if row.reads.at and row.counted and not row.warmup]
    good = sorted((row for row in rows if not row.error), key=lambda row: row.reads.at[0])
    found = [(f"failed ({row.kind})", row) for row in rows if row.error][:1]
    if good:
        pause = ("longest pause", max(good, key=longest_pause))
        found = [("typical", good[len(good) // 2]), ("slowest first token", good[-1]), pause, *found]
    return list({id(row): (why, row) for why, row in reversed(found)}.values())[::-1]


def longest_pause(row: Row) -> float:
    return max((after - before for before, after in pairwise(row.reads.at)), default=0.0)


def thinned(at: Sequence[float], most: int) -> list[int]:
    """The places of the kept reads: first and last, evenly between them, and the two sides of the longest pauses."""
    count = len(at)
    if count <= most:
        return list(range(count))
    pauses = sorted(range(1, count), key=lambda n: at[n] - at[n - 1], reverse=True)[: most // 8]
    kept = {0, count - 1, *pauses, *(n - 1 for n in pauses)}
    room = most - len(kept)
    return sorted(kept | {round(n * (count - 1) / max(room, 1)) for n in range(room)})


def _timeline(run: int, level: Level, label: str, row: Row, most: int) -> Timeline:
    total = list(accumulate(row.reads.tokens))
    kept = thinned(row.reads.at, most)
    at = tuple(round(row.reads.at[n], 4) for n in kept)
    return Timeline(run, level.plan.name, label, at, tuple(total[n] for n in kept), row.reads.exact)


def _label(why: str, row: Row) -> str:
    turn, reads = f", turn {row.turn + 1}" if row.turn else "", row.reads
    took = f"{sum(reads.tokens)} tokens in {seconds(reads.at[-1])}"
    return f"{why}: request {row.session}{turn}, first token {seconds(reads.at[0])}, {took}"
