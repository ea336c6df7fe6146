"""A soak's rows and samples as what they show: slopes, changes of latency, failures, answers."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from sparkwright.domain.evaluation import Evaluation, ProbeOutcome, ProbeState
from sparkwright.domain.run import Level, Row, Run, Scrape
from sparkwright.domain.soak import Endurance, MemoryTrend, Point, Shift, SoakFinding
from sparkwright.domain.summary import Interval
from sparkwright.domain.units import MIB, duration, gib
from sparkwright.loadgen import figures, samples
from sparkwright.loadgen.trend import FEWEST, changes, fit_trend, thinned

SOAK = "soak"
PROCESS = "process_memory"  # word of engines/data/engines
SERVER = "server process"
# What must be gone at least: less is what other programs of a machine do, and what an allocator takes once.
_LEAST_NODE, _LEAST_PROCESS = 256 * MIB, 32 * MIB
SLOWER = 0.2  # what latency must change by
_OWN = ("time-up", "not-sent")
_GROUPS, _IN_GROUP = 120, 4
_LATENCIES = {"ttft": lambda row: row.first, "tpot": figures.time_per_token}
_EVENTS = ("incident", "floor", "gone")


def is_soak(run: Run) -> bool:
    return bool(run.evaluation and run.evaluation.kind == SOAK)


def endurance(run: Run) -> Endurance:
    """Everything is computed from the rows, the samples and what the probes found."""
    found, levels = run.evaluation or Evaluation(SOAK), sorted(run.levels, key=lambda one: one.began)
    timed = [(one.began - run.began + row.sent, one, row) for one in levels for row in samples.counted(one)]
    counted = [row for _, _, row in timed if row.kind not in _OWN]
    ended = sorted(at + (row.end or 0.0) for at, _, row in timed if not row.error)
    latency = {name: series for name in _LATENCIES if len(series := _latency(timed, name)) >= FEWEST}
    scrapes = [(one.began - run.began + scrape.at, scrape) for one in levels for scrape in one.scrapes]
    memory = tuple(_memory(scrapes, ended, found.floor))
    made = Endurance(
        seconds=found.seconds,
        requests=len(counted),
        errors=dict(Counter(row.kind or "error" for row in counted if row.error)) | _hung(levels),
        memory=memory,
        latency=latency,
        shifts=tuple(shift for name, series in latency.items() for shift in _shifts(name, series)),
        restarts=_restarts(levels),
        failed=tuple(one for one in found.outcomes if one.state is ProbeState.FAILED),
        unknown=tuple(_unknown(memory, latency, found)),
    )
    return replace(made, findings=tuple(_findings(made, found)))


def _hung(levels: Sequence[Level]) -> dict[str, int]:
    """Requests cut off by the end of a level in which no other request ended."""
    cut = 0
    for level in levels:
        rows = samples.counted(level)
        cut += len(rows) if rows and level.complete and all(row.kind == "time-up" for row in rows) else 0
    return {"no-answer": cut} if cut else {}


def _memory(scrapes: Sequence[tuple[float, Scrape]], ended: Sequence[float], floor: int) -> Iterator[MemoryTrend]:
    """The memory of each sampled node; without any, that of the server's process."""
    for node in dict.fromkeys(name for _, scrape in scrapes for name in scrape.memory):
        points = [(at, float(scrape.memory[node])) for at, scrape in scrapes if node in scrape.memory]
        if made := _trend(node, points, ended, floor):
            yield made
    points = [(at, scrape.figures[PROCESS]) for at, scrape in scrapes if PROCESS in scrape.figures]
    if points and not any(scrape.memory for _, scrape in scrapes) and (made := _trend("", points, ended, 0)):
        yield made


def _trend(node: str, points: Sequence[Point], ended: Sequence[float], floor: int) -> MemoryTrend | None:
    """node: '' for the process, of which growth is what is lost."""
    sign = -1.0 if node else 1.0
    found = fit_trend(points)
    if found is None:
        return None
    by_request = fit_trend([(float(bisect_right(ended, at)), value) for at, value in points])
    each = _lost(by_request.slope, sign) if by_request and len(ended) >= FEWEST else None
    per_hour, lost = _lost(found.slope, sign, 3600.0), sign * found.rise
    leak = found.steady and per_hour.low > 0 and lost >= (_LEAST_NODE if node else _LEAST_PROCESS)
    last = thinned(points)[-1][1]
    left = max(0.0, last - floor) / per_hour.value * 3600.0 if node and leak else None
    return MemoryTrend(node or SERVER, tuple(points), per_hour, each, left, leak, not node)


def _lost(slope: Interval, sign: float, scale: float = 1.0) -> Interval:
    low, high = sorted((sign * scale * slope.low, sign * scale * slope.high))
    return Interval(sign * scale * slope.value + 0.0, low + 0.0, high + 0.0)  # no -0.0


def _latency(timed: Sequence[tuple[float, Level, Row]], name: str) -> tuple[Point, ...]:
    """Latency relative to requests of the same kind (level, turn): medians of a few requests each, in order of time."""
    figure, seen = _LATENCIES[name], list[tuple[float, tuple[str, int], float]]()
    for at, level, row in timed:
        value = None if row.error else figure(row)
        if value and value > 0:
            seen.append((at, (level.plan.name, row.turn), value))
    usual: dict[tuple[str, int], list[float]] = {}
    for _, kind, value in seen:
        usual.setdefault(kind, []).append(value)
    middle = {kind: median(values) for kind, values in usual.items()}
    ratios = sorted((at, value / middle[kind]) for at, kind, value in seen if len(usual[kind]) >= _IN_GROUP)
    size = max(_IN_GROUP, -(-len(ratios) // _GROUPS))
    groups = [ratios[n : n + size] for n in range(0, len(ratios) - size + 1, size)]
    return tuple((group[0][0], median(value for _, value in group)) for group in groups)


def _shifts(name: str, series: Sequence[Point]) -> Iterator[Shift]:
    values = [math.log(value) for _, value in series]
    cuts = changes(values, math.log1p(SLOWER))
    for (before, cut), (_, after) in pairwise(pairwise((0, *cuts, len(values)))):
        levels = (math.exp(median(values[before:cut])), math.exp(median(values[cut:after])))
        yield Shift(name, series[cut][0], *levels)


def _restarts(levels: Sequence[Level]) -> int:
    """The number of restarts by fallen counters, within a level and from one to the next."""
    seen = [scrape for one in levels for scrape in one.scrapes if "generation_tokens_total" in scrape.figures]
    totals = [scrape.figures["generation_tokens_total"] for scrape in seen]
    return sum(after < before for before, after in pairwise(totals))


def _unknown(memory: Sequence[MemoryTrend], latency: Mapping[str, object], found: Evaluation) -> Iterator[str]:
    if not memory:
        yield "memory is unknown: too few samples, or neither nodes of ours nor the server's own figure of it"
    if memory and memory[0].process:
        yield "memory of the nodes is unknown: the server's own process is all that is seen, not what its workers hold"
    if not latency:
        yield "latency has too few requests for a drift to be seen"
    if not any(one.state in (ProbeState.PASSED, ProbeState.FAILED) for one in found.outcomes):
        yield "answers were not judged: no probe had an answer"


def _findings(made: Endurance, found: Evaluation) -> Iterator[SoakFinding]:
    for trend in made.memory:
        if trend.leak:
            yield SoakFinding("leak", memory_text(trend))
    for shift in made.shifts:
        if shift.change >= SLOWER:
            yield SoakFinding("drift", shift_text(shift))
    if made.errors:
        kinds = ", ".join(f"{kind}: {count}" for kind, count in made.errors.items())
        yield SoakFinding("errors", f"{sum(made.errors.values())} of {made.requests} requests failed ({kinds})")
    if made.restarts:
        yield SoakFinding("restart", f"the engine was restarted {made.restarts} times: its counters fell")
    for name, outcomes in _by_name(made.failed).items():
        asked = sum(one.name == name and one.state in (ProbeState.PASSED, ProbeState.FAILED) for one in found.outcomes)
        yield SoakFinding("answers", f"{name} failed {len(outcomes)} of {asked} times: {outcomes[0].detail}")
    yield from (SoakFinding(one.kind, one.text) for one in found.events if one.kind in _EVENTS)


_PARTS = ("leak", "drift", "errors", "answers", "restart", "incident", "floor", "gone")


def as_outcomes(run: Run) -> Run:
    """A soak with an outcome for each kind of finding, so that two of them can be compared."""
    soak = endurance(run)
    found = {one.kind: one.text for one in reversed(soak.findings)}
    judged = {
        "leak": bool(soak.memory),
        "drift": bool(soak.latency),
        "answers": any(
            one.state in (ProbeState.PASSED, ProbeState.FAILED) for one in (run.evaluation or Evaluation("")).outcomes
        ),
    }
    states = {
        kind: ProbeState.FAILED if kind in found else ProbeState.PASSED for kind in _PARTS if judged.get(kind, True)
    }
    outcomes = tuple(ProbeOutcome(kind, states.get(kind, ProbeState.SKIPPED), found.get(kind, "")) for kind in _PARTS)
    return replace(run, evaluation=Evaluation(SOAK, outcomes))


def _by_name(outcomes: Sequence[ProbeOutcome]) -> dict[str, list[ProbeOutcome]]:
    found: dict[str, list[ProbeOutcome]] = {}
    for one in outcomes:
        found.setdefault(one.name, []).append(one)
    return found


def memory_text(trend: MemoryTrend) -> str:
    """`spark-1 loses 1.20 GiB an hour (1.10 to 1.31), 0.02 GiB a request: 3 h until the floor`."""
    hour = trend.per_hour
    how = "grows by" if trend.process else "loses"
    text = f"{trend.of} {how} {gib(hour.value)} an hour ({gib(hour.low)} to {gib(hour.high)}, 95 %)"
    text += f", {trend.per_request.value / MIB:.3g} MiB a request" if trend.per_request else ""
    return text + (f": {duration(trend.left)} left until the floor" if trend.left is not None else "")


def shift_text(shift: Shift) -> str:
    return f"{shift.metric} is {shift.change:+.0%} from {duration(shift.at)} on"
