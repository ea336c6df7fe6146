"""A run's rows as figures with their spread. Always computed from the rows, never stored instead of them."""

from collections.abc import Mapping

from sparkwright.domain.run import Run
from sparkwright.domain.values import dataclass, field
from sparkwright.domain.workload import LevelPlan

# Metric -> (unit, whether more is better). Times in seconds, rates in tokens or requests per second.
METRICS: Mapping[str, tuple[str, bool]] = {
    "ttft": ("s", False),
    "ttft_content": ("s", False),  # first token that is no reasoning
    "tpot": ("s", False),  # per request: (last token - first token) / tokens after the first read
    "itl": ("s", False),  # per token; a read with n tokens counts n times its share
    "end_to_end": ("s", False),
    "decode": ("tokens/s", True),  # per user: 1 / TPOT
    "prefill": ("tokens/s", True),  # uncached prompt tokens / TTFT
    "output_rate": ("tokens/s", True),  # of the whole level
    "total_rate": ("tokens/s", True),  # prompt and output
    "request_rate": ("requests/s", True),
    "goodput": ("requests/s", True),  # requests that met the SLO
    "cached_share": ("", True),
    "acceptance": ("", True),  # mean accepted tokens a step, speculative decoding
    "ttft_sent": ("s", False),  # open loop only: from when it was really sent; `ttft` is from when it was intended
    "end_to_end_sent": ("s", False),
}


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and its 95 % bootstrap interval; low == high == value where there is one value only."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Metric:
    """count: values behind it, 0 where that is not known. None: not known either.

    spread: of the repeats' medians, (most - least) / median; 0 with one repeat. stated: as another tool printed it,
    without intervals.
    """

    name: str
    count: int
    mean: Interval | None
    median: Interval | None
    p90: Interval | None
    p99: Interval | None
    least: float | None
    most: float | None
    spread: float = 0.0
    stated: bool = False

    @property
    def central(self) -> Interval | None:
        """The median, or the mean where only that is stated."""
        return self.median or self.mean


@dataclass(frozen=True, slots=True)
class LevelSummary:
    """All repeats of one level. metrics: only those that could be measured. part: '' for all counted requests; else
    `cold`, `warm`, or `turn 3` of an agentic level.

    errors: kind -> how often. sent, good: requests; tokens: output tokens of good ones. met: share that met the SLO,
    None without one. doubts: why its figures may not count; notes: what to know about them. server: from its own
    counters, by words of engines/data/engines (gauges: the most; counters: the increase), and prefix_hit_share,
    acceptance, memory_available_least. spoiled: metrics that are not valid: the client was behind at every level.
    """

    plan: LevelPlan
    part: str
    repeats: int
    sent: int
    good: int
    tokens: int
    seconds: float
    metrics: Mapping[str, Metric]
    errors: Mapping[str, int] = field(default_factory=dict)
    met: float | None = None
    doubts: tuple[str, ...] = ()
    server: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    spoiled: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.plan.name}, {self.part}" if self.part else self.plan.name


@dataclass(frozen=True, slots=True)
class RunSummary:
    """invalid: why the run as a whole proves nothing; () when it is valid. best_rate: of a search, per second."""

    run: Run
    levels: tuple[LevelSummary, ...]
    invalid: tuple[str, ...] = ()
    best_rate: float | None = None


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of one level in two runs. verdict: better, worse, same, unclear. ratio: new / base, None of 0."""

    level: str
    part: str
    metric: str
    statistic: str
    base: Interval
    new: Interval
    ratio: Interval | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """refused: why they cannot be compared, one sentence each; () when they can. notes: what differs and is allowed."""

    base: str
    new: str
    rows: tuple[MetricComparison, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GateResult:
    """One line of a gate file against a run. seen: the figure as people write it."""

    line: str
    passed: bool
    observed: float | None  # None where the run has no such figure, which fails
    wanted: str
    why: str = ""
    seen: str = ""
