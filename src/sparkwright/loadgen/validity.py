"""The validity of figures: was the client in time, and was it measured what was planned?"""

import statistics
from bisect import bisect_right
from collections.abc import Sequence

from sparkwright.domain.run import Level, Row, Run
from sparkwright.domain.units import milliseconds
from sparkwright.domain.values import dataclass
from sparkwright.loadgen import figures, samples, stated

LAG = 0.010  # seconds at the 99th percentile
LAG_SHARE = 0.1  # of the median time between tokens, or to the first
LAG_FLOOR = 0.002  # below it a lag is what any shared machine does now and then
STEADY = 0.005  # of the time from the first token to the last: so far a lag may change the time per token
_STEADY = ("tpot", "decode")
CORES = 0.9  # of one core, in the client's busiest process
LATE = 0.050  # seconds at the 99th percentile, where nothing but the client held a request back
ERRORS = 0.1
LENGTH = 0.1  # how far tokens may be from what was planned
TEMPLATE = 64  # tokens that all prompts of a model begin with: these come from the cache whatever is sent


@dataclass(frozen=True, slots=True)
class ClientFault:
    """A fault of the client in one repeat. kind: a fault of several repeats is reported once. times: of the allowed
    value."""

    kind: str
    times: float
    text: str


def invalid(run: Run) -> tuple[str, ...]:
    """Reasons why a run proves nothing; () if it may count."""
    if run.evaluation and not run.levels:
        return ("it is an evaluation, without figures of speed",)
    missing = run.conditions.missing
    whose = "our own deployment" if run.conditions.ours else "an endpoint"
    found = [f"provenance is incomplete: {', '.join(missing)} of {whose} is not known"] if missing else []
    if not any(level.stated or samples.without_errors(samples.counted(level)) for level in run.levels):
        found.append("no request went well")
    if always_late(run) and not any(map(steady, by_level(run))):  # one level of several is in doubt only
        found += [f"{repeats[0].plan.name}: {text}" for repeats in by_level(run) for text in client_delays(repeats)]
    return tuple(found)


def always_late(run: Run) -> bool:
    """True if the client was behind at every level."""
    levels = by_level(run)
    return bool(levels) and all(client_delays(repeats) for repeats in levels)


def steady(repeats: Sequence[Level]) -> tuple[str, ...]:
    """Metrics that count although the client was behind: it cannot have changed them by more than STEADY."""
    lags_only = all(fault.kind == "lag" for level in repeats for fault in faults(level))
    return _STEADY if lags_only and all(level.lag.p99 <= STEADY * _streamed(level) for level in repeats) else ()


def _streamed(level: Level) -> float:
    """Median seconds from the first to the last token: a lag at either end is shared out over all tokens between."""
    rows = samples.without_errors(samples.counted(level))
    spans = [row.reads.at[-1] - row.reads.at[0] for row in rows if len(row.reads.at) > 1]
    return statistics.median(spans) if spans else 0.0


def by_level(run: Run) -> list[tuple[Level, ...]]:
    """The repeats of each level that figures are made of.

    One that was cut short counts only where the level has no whole one. Those in which the client was behind are left
    out as long as half of them stay; else all of them count, and the run is not valid.
    """
    found: dict[str, list[Level]] = {}
    for level in run.levels:
        found.setdefault(level.plan.name, []).append(level)
    chosen = []
    for every in found.values():
        repeats = [one for one in every if one.complete] or every
        well = [level for level in repeats if not faults(level)]
        chosen.append(tuple(well if 2 * len(well) >= len(repeats) else repeats))
    return chosen


def client_delays(repeats: Sequence[Level]) -> tuple[str, ...]:
    """The client's delays in these repeats: each kind of fault once, by its worst."""
    found: dict[str, list[ClientFault]] = {}
    for fault in (fault for level in repeats for fault in faults(level)):
        found.setdefault(fault.kind, []).append(fault)
    worst = [(max(each, key=lambda fault: fault.times).text, len(each)) for each in found.values()]
    many = len(repeats) > 1
    return tuple(f"{text}, in {count} of {len(repeats)} repeats" if many else text for text, count in worst)


def faults(level: Level) -> tuple[ClientFault, ...]:
    """Reasons not to trust the client's own times of this repeat."""
    lag, found = level.lag, []
    rows = samples.without_errors(samples.counted(level))
    limits = [(LAG, "whatever is measured")]
    for name, figure in (("time per token", figures.time_per_token), ("time to first token", lambda row: row.first)):
        if values := [value for row in rows if (value := figure(row))]:
            share = LAG_SHARE * statistics.median(values)
            limits.append((max(share, LAG_FLOOR), f"{LAG_SHARE:.0%} of the median {name}"))
    limit, of_what = min(limits)
    if lag.p99 > limit:
        text = f"the client was {milliseconds(lag.p99)} behind at p99 (allowed: {milliseconds(limit)}, {of_what})"
        found.append(ClientFault("lag", lag.p99 / limit, text))
    if lag.cores > CORES:
        text = f"the client used {lag.cores:.0%} of a core (allowed: {CORES:.0%})"
        found.append(ClientFault("cores", lag.cores / CORES, text))
    held = _held_back(level)
    if held > LATE:
        text = f"requests were sent {milliseconds(held)} late at p99 with places free (allowed: {milliseconds(LATE)})"
        found.append(ClientFault("held", held / LATE, text))
    return tuple(found)


def _held_back(level: Level) -> float:
    """p99 of how much later than intended requests of an open loop were sent while there was a free place."""
    if not figures.is_open(level.plan):
        return 0.0
    places = level.plan.pace.concurrency
    rows = [row for row in level.rows if not row.warmup]
    # When places were taken, and when they came free: a session keeps its own from its first turn to its last.
    first, last = dict[int, float](), dict[int, float]()
    for row in rows:
        first[row.session] = min(row.sent, first.get(row.session, row.sent))
        last[row.session] = max(row.sent + (row.end or 0.0), last.get(row.session, 0.0))
    starts, ends = sorted(first.values()), sorted(last.values())

    def free(row: Row) -> bool:
        """A later turn goes on in the place that its session has."""
        taken = bisect_right(starts, row.intended) - bisect_right(ends, row.intended)
        return not places or row.turn > 0 or taken < places

    late = sorted(figures.waited(row) for row in rows if free(row))
    return late[min(len(late) - 1, int(0.99 * len(late)))] if late else 0.0


def doubts(level: Level) -> tuple[str, ...]:
    """Reasons why this repeat's figures may not count, as far as its rows and counters show; `late` is apart."""
    rows = samples.counted(level)
    well = samples.without_errors(rows)
    found = []
    failed = len(rows) - len(well)
    if rows and failed > ERRORS * len(rows):
        found.append(f"{failed} of {len(rows)} requests failed")
    if samples.restarted(level.scrapes):
        found.append("the server's counters were reset: it was restarted")
    if not level.complete:
        found.append("cut short: only requests that had ended are counted, and those are the short ones")
    return (*found, *_lengths(well), *_caches(well))


def _lengths(rows: Sequence[Row]) -> list[str]:
    prompt = [(row.prompt_tokens, row.planned_prompt) for row in rows if row.prompt_tokens and row.planned_prompt]
    output = [(row.output_tokens, row.planned_output) for row in rows if row.output_tokens and row.planned_output]
    found = _off("prompts", prompt, "is the tokenizer the model's?")
    return found + _off("answers", output, "does the server heed `ignore_eos`?")


def _off(what: str, pairs: Sequence[tuple[int, int]], hint: str) -> list[str]:
    got, planned = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    if not planned or abs(got - planned) <= LENGTH * planned:
        return []
    return [f"{what} have {got / planned:.0%} of the planned tokens: {hint}"]


def _caches(rows: Sequence[Row]) -> list[str]:
    """The doubt about cold prompts that came from the cache: they make a cold figure a warm one."""
    cold = [row for row in rows if not row.planned_cached and row.prompt_tokens]
    warm = sum((row.cached_tokens or 0) > max(TEMPLATE, LENGTH * (row.prompt_tokens or 0)) for row in cold)
    return [f"{warm} of {len(cold)} prompts that were to be new came from the cache"] if warm else []


def figure_notes(run: Run, repeats: Sequence[Level]) -> tuple[str, ...]:
    """Notes about a level's figures; none of them makes the figures wrong."""
    rows = [row for level in repeats for row in samples.without_errors(samples.counted(level))]
    silent = sum(row.output_tokens is None for row in rows)
    shared = sum(not row.reads.exact for row in rows)
    found = [f"{silent} of {len(rows)} answers without usage: no figures per token from them"] if silent else []
    if stated.missing(repeats):
        found.append(f"figures as {run.imported or 'another tool'} states them: no requests, so no intervals")
    if shared:
        found.append(f"{shared} of {len(rows)} answers have the total of tokens only: it was shared out over the reads")
    if is_estimate(run.conditions.tokenizer):
        found.append(f"lengths of prompts are estimates: {run.conditions.tokenizer}")
    used = {level.repeat for level in repeats}
    whole = [one for one in run.levels if one.plan.name == repeats[0].plan.name and one.complete]
    gone = [one for one in whole if one.repeat not in used]
    return (*found, *[f"repeat {one.repeat + 1} is left out: {client_delays([one])[0]}" for one in gone if faults(one)])


def is_estimate(tokenizer: str) -> bool:
    """True if Conditions show that nobody counted the tokens of a prompt before it was sent."""
    return tokenizer.startswith("estimate")
