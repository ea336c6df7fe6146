"""Gate files: thresholds a line each, as people write them.

# comment
ttft.p99 < 2s @ depth=32k
decode.median >= 0.95 x baseline
errors == 0
goodput >= 3/s @ level=c8
failed_probes == 0
score >= 85% @ outcome=prompts-strict
memory_per_hour < 100MiB
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from sparkwright.domain.errors import UsageError
from sparkwright.domain.summary import METRICS
from sparkwright.domain.values import dataclass

STATISTICS = ("mean", "median", "p90", "p99", "least", "most", "spread")
# Metrics that are one number of a level -> unit: "" is a count, "share" lies between 0 and 1, "bytes" are of memory.
_OF_A_LEVEL: Mapping[str, str] = {
    "errors": "",
    "error_share": "share",
    "met": "share",
    "best_rate": "requests/s",
    "queue": "",
    "preemptions": "",
    "kv_usage": "share",
    "prefix_hits": "share",
    "memory_available": "bytes",
}
# Metrics of an evaluation as a whole.
QUALITY: Mapping[str, str] = {"failed_probes": "", "score": "share"}
# Metrics of a soak as a whole: bytes lost an hour and a request, how much slower it became, failures of any kind.
ENDURANCE: Mapping[str, str] = {
    "memory_per_hour": "bytes",
    "memory_per_request": "bytes",
    "latency_drift": "share",
    "faults": "",
}
WHOLE = {**QUALITY, **ENDURANCE}
PLAIN = {**_OF_A_LEVEL, **WHOLE}  # metrics that are one number, without a statistic
OUTCOME = "outcome"
SELECTORS = ("level", "depth", "prompt", "output", "concurrency", "rate", "part", "turn", OUTCOME)
_SHORT = {"c": "concurrency"}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}
_SHARES = {"": 1.0, "%": 0.01}
_UNITS: Mapping[str, Mapping[str, float]] = {
    "s": _TIMES,
    "tokens/s": dict.fromkeys(("", "tokens/s", "tok/s", "t/s", "/s"), 1.0),
    "requests/s": dict.fromkeys(("", "requests/s", "req/s", "/s"), 1.0),
    "": {"": 1.0},
    "share": _SHARES,
    "bytes": {"": 1.0, "MiB": 2.0**20, "GiB": 2.0**30, "MB": 1e6, "GB": 1e9},
}
_SHARES_OF_REQUESTS = ("cached_share",)  # metrics of each request that lie between 0 and 1
_LINE = re.compile(r"(?P<what>[\w.]+)\s*(?P<sign><=|>=|==|<|>)\s*(?P<wanted>[^@]*?)\s*(?:@\s*(?P<where>.*))?")
_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_LIMIT = re.compile(rf"{_NUMBER}\s*(?P<unit>[^\s\d]*)")
_OF_BASELINE = re.compile(rf"{_NUMBER}\s*(?:[x*×]|(?P<percent>%)\s+of)\s*baseline")
_SAME_AS_BASELINE = "baseline"


class BadLine(ValueError):
    """The reason why a line is no gate."""


@dataclass(frozen=True, slots=True)
class Gate:
    """limit: in seconds, tokens, requests, shares; of_baseline: as a factor of what the baseline has.

    where: (selector, value); () selects every level.
    """

    line: str
    metric: str
    statistic: str
    sign: str
    limit: float
    of_baseline: bool = False
    where: tuple[tuple[str, str], ...] = ()


def parse(text: str, name: str = "gates") -> tuple[Gate, ...]:
    """Raises UsageError that names every bad line."""
    gates, bad = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not (words := line.partition("#")[0].strip()):
            continue
        try:
            match = _LINE.fullmatch(words)
            if not match:
                raise BadLine(f"{words!r} has none of < <= == >= > between a metric and a number")
            metric, statistic = _metric_and_statistic(match["what"])
            limit, of_baseline = _limit(match["wanted"], unit_of(metric, statistic))
            where = tuple(_selectors(match["where"])) if match["where"] is not None else ()
            _check_selectors(metric, of_baseline, where)
            gates.append(Gate(words, metric, statistic, match["sign"], limit, of_baseline, where))
        except BadLine as error:
            bad.append(f"{name}:{number}: {error}")
    if bad:
        raise UsageError("\n".join(bad), "a line is METRIC.STATISTIC SIGN NUMBER UNIT [@ depth=32k], as ttft.p99 < 2s")
    if not gates:
        raise UsageError(f"{name}: no gate in it", "write a line such as: ttft.p99 < 2s @ depth=32k")
    return tuple(gates)


def _check_selectors(metric: str, of_baseline: bool, where: tuple[tuple[str, str], ...]) -> None:
    """Raises BadLine: metrics of a whole run select no level and have no baseline, others select no outcome."""
    keys = [key for key, _ in where]
    if metric not in WHOLE:
        if OUTCOME in keys:
            raise BadLine(f"{metric} is not selected by outcome: that is for score")
        return
    if of_baseline:
        raise BadLine(f"{metric} has no baseline: sparkwright compare judges two evaluations")
    if odd := [key for key in keys if metric != "score" or key != OUTCOME]:
        raise BadLine(f"{metric} is of a run as a whole: nothing is selected by {odd[0]!r}")


def _metric_and_statistic(text: str) -> tuple[str, str]:
    """(metric, statistic): the median where none is named, '' for a metric that is one number. Raises BadLine."""
    metric, dot, statistic = text.partition(".")
    if metric not in METRICS and metric not in PLAIN:
        raise BadLine(f"no metric {metric!r}{_near(metric, (*METRICS, *PLAIN))}")
    if metric in PLAIN:
        if dot:
            raise BadLine(f"{metric} is one number: it has no .{statistic}")
        return metric, ""
    statistic = statistic if dot else "median"
    if statistic not in STATISTICS:
        raise BadLine(f"no statistic {statistic!r}{_near(statistic, STATISTICS)}")
    return metric, statistic


def _near(word: str, words: tuple[str, ...]) -> str:
    """The end of a message about an unknown word: the nearest known one, else all of them."""
    near = get_close_matches(word, words, n=1)
    return f": did you mean {near[0]}?" if near else f"; there are {', '.join(words)}"


def unit_of(metric: str, statistic: str) -> str:
    """The unit in which a gate's limit is given, a key of _UNITS."""
    if statistic == "spread" or metric in _SHARES_OF_REQUESTS:
        return "share"
    return PLAIN[metric] if metric in PLAIN else METRICS[metric][0]


def _limit(text: str, unit: str) -> tuple[float, bool]:
    """(limit in the metric's base unit, False), or (factor, True) of the baseline. Raises BadLine."""
    if text == _SAME_AS_BASELINE:
        return 1.0, True
    if match := _OF_BASELINE.fullmatch(text):
        return float(match["number"]) * (0.01 if match["percent"] else 1.0), True
    match = _LIMIT.fullmatch(text)
    if not match:
        raise BadLine(f"{text!r} is no number with a unit, nor a factor of the baseline as in 0.95 x baseline")
    units = _UNITS[unit]
    if match["unit"] not in units:
        wanted = ", ".join(one or "none" for one in units)
        raise BadLine(f"{text!r} has the unit {match['unit'] or 'none'}; it takes {wanted}")
    return float(match["number"]) * units[match["unit"]], False


def _selectors(text: str) -> Iterator[tuple[str, str]]:
    """The pairs behind `@`, as in `depth=32k, c=8`. Raises BadLine."""
    for pair in re.split(r"[,\s]+", re.sub(r"\s*=\s*", "=", text.strip())):
        key, equals, value = pair.partition("=")
        key = _SHORT.get(key, key)
        if not equals or not value:
            raise BadLine(f"{pair!r} after @ is not of the form depth=32k")
        if key not in SELECTORS:
            raise BadLine(f"nothing is selected by {key!r}{_near(key, SELECTORS)}")
        if key not in ("level", "part", OUTCOME) and not possible_values(value):
            raise BadLine(f"{value!r} is no number")
        yield key, value


def possible_values(text: str) -> frozenset[float]:
    """The possible values of a number: 32k is 32,000 and 32,768, whichever a level has. Empty for anything else."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kKmM]?)", text)
    if not match:
        return frozenset()
    power = {"": 0, "k": 1, "m": 2}[match[2].lower()]
    return frozenset(float(match[1]) * base**power for base in (1000, 1024))
