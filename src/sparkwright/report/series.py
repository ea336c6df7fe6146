"""Curves of one or several runs: what is drawn, as numbers, with a sentence on what they show."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from sparkwright.domain.summary import METRICS, Interval, LevelSummary, RunSummary
from sparkwright.domain.units import percent
from sparkwright.domain.values import dataclass
from sparkwright.domain.workload import Arrival, LevelPlan, Single
from sparkwright.report import texts
from sparkwright.report.tables import whole_levels
from sparkwright.report.texts import Traits, traits


@dataclass(frozen=True, slots=True)
class Point:
    """count: values behind it."""

    x: float
    y: Interval
    count: int = 0


@dataclass(frozen=True, slots=True)
class Curve:
    """run: which of the runs. style: which of the run's curves, for dashes and markers. thin: a line without marks."""

    name: str
    run: int
    style: int
    points: tuple[Point, ...]
    thin: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """unit: `s` and `tokens/s` as in METRICS, `tokens` of context, `B`, `%`. spread: steps of powers, evenly

    drawn. each: what one value on it is called.
    """

    label: str
    unit: str = ""
    spread: bool = False
    each: str = "{}"


@dataclass(frozen=True, slots=True)
class Plot:
    """limits: horizontal lines with their names. The rest: what the plot shows, as a sentence."""

    id: str
    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    says: str = ""
    limits: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class CurveFamily:
    """Levels of one run that differ in x only."""

    run: int
    traits: Traits
    levels: tuple[tuple[float, LevelSummary], ...]


@dataclass(frozen=True, slots=True)
class LoadAxis:
    """The load axis of a plot: `of` is a level's place on it, None without one."""

    name: str
    of: Callable[[LevelPlan], float | None]
    axis: Axis


# Against load: metric -> title, label of its axis.
_AGAINST_LOAD = {
    "ttft": ("Time to first token", texts.TITLES["ttft"]),
    "tpot": ("Time per output token", texts.TITLES["tpot"]),
    "output_rate": ("Throughput", "output of all users, tokens/s"),
    "goodput": ("Goodput", "requests/s within the limits"),
}
DEPTH_AXIS = Axis("context before the prompt, tokens", "tokens", spread=True, each="{} tokens")


def depth_of(plan: LevelPlan) -> float | None:
    return plan.shape.depth if isinstance(plan.shape, Single) else None


def concurrency_of(plan: LevelPlan) -> float | None:
    return plan.pace.concurrency if plan.pace.arrival is Arrival.CLOSED else None


def rate_of(plan: LevelPlan) -> float | None:
    """The rate of a level; None for a ramp, or for recorded times."""
    steady = (Arrival.CONSTANT, Arrival.POISSON, Arrival.BURSTS)
    return plan.pace.rate if plan.pace.arrival in steady else None


CONCURRENCY = LoadAxis("concurrency", concurrency_of, Axis("requests at a time", spread=True, each="{} at a time"))
RATE = LoadAxis("rate", rate_of, Axis("requests/s offered", spread=True, each="{} requests/s"))


def depth_plots(runs: Sequence[RunSummary]) -> list[Plot]:
    """Decode, prefill and TTFT against the depth of context."""
    families = families_by(runs, depth_of, texts.DEPTH)
    wanted = (("decode", "Decode"), ("prefill", "Prefill"), ("ttft", "Time to first token"))
    return [plot for metric, name in wanted if (plot := _depth_plot(runs, families, metric, name))]


def _depth_plot(runs: Sequence[RunSummary], families: Sequence[CurveFamily], metric: str, name: str) -> Plot | None:
    curves = metric_curves(families, metric, ("median",))
    if not curves:
        return None
    label = f"{texts.column_head(metric)}{' for one user' if metric == 'decode' else ''}"
    said = each_run(runs, curves, lambda curve: depth_words(metric, curve))
    return Plot(f"{metric}-depth", f"{name} against depth", DEPTH_AXIS, Axis(label, METRICS[metric][0]), curves, said)


def load_plots(runs: Sequence[RunSummary]) -> list[Plot]:
    """TTFT, TPOT and throughput against concurrency, and against rate where requests came by the clock."""
    plots = []
    for load in (CONCURRENCY, RATE):
        families = families_by(runs, load.of, texts.LOAD)
        plots += [_load_plot(runs, families, load, metric) for metric in _AGAINST_LOAD]
    return [plot for plot in plots if plot]


def _load_plot(runs: Sequence[RunSummary], families: Sequence[CurveFamily], load: LoadAxis, metric: str) -> Plot | None:
    """A latency with its p99, and the limits that were set to it."""
    (title, label), unit = _AGAINST_LOAD[metric], METRICS[metric][0]
    curves = metric_curves(families, metric, ("median", "p99") if unit == "s" else ("median",))
    if not curves:
        return None
    limits = slo_lines(runs, metric)
    said = each_run(runs, curves, lambda curve: limit_words(curve, limits, load.axis))
    y = Axis(label, unit)
    return Plot(f"{metric}-{load.name}", f"{title} against {load.name}", load.axis, y, curves, said, limits)


def families_by(runs: Sequence[RunSummary], of: Callable[[LevelPlan], float | None], varies: str) -> list[CurveFamily]:
    """The levels of each run that form a curve over `of`: alike in all traits but `varies`, two at least."""
    families = []
    for run, summary in enumerate(runs):
        groups: dict[tuple[tuple[str, str], ...], dict[float, LevelSummary]] = {}
        for level in whole_levels(summary):
            x = of(level.plan)
            if x is not None:
                key = tuple((name, text) for name, text in traits(level.plan).items() if name != varies)
                groups.setdefault(key, {})[x] = level
        for key, group in groups.items():
            if len(group) > 1:
                families.append(CurveFamily(run, dict(key), tuple(sorted(group.items(), key=itemgetter(0)))))
    return families


def metric_curves(families: Sequence[CurveFamily], metric: str, statistics: Sequence[str]) -> tuple[Curve, ...]:
    """One curve a family and statistic; only where the figure was measured."""
    names = texts.curve_names([family.traits for family in families])
    curves: list[Curve] = []
    for family, name in zip(families, names, strict=True):
        for statistic in statistics:
            points = tuple(point for x, level in family.levels if (point := point_of(x, level, metric, statistic)))
            label = ", ".join(filter(None, (name, statistic if len(statistics) > 1 else "")))
            style = sum(curve.run == family.run for curve in curves)
            if points:
                curves.append(Curve(label or texts.TITLES[metric], family.run, style, points))
    return tuple(curves)


def point_of(x: float, level: LevelSummary, metric: str, statistic: str = "median") -> Point | None:
    found = level.metrics.get(metric)
    which = "central" if statistic == "median" else statistic
    interval: Interval | None = getattr(found, which) if found else None
    return Point(x, interval, found.count) if found and interval else None


def slo_lines(runs: Sequence[RunSummary], metric: str) -> tuple[tuple[str, float], ...]:
    """The limits that runs set to this figure, each once."""
    wanted = {getattr(run.run.workload.slo, metric, 0.0) for run in runs if run.run.workload.slo}
    return tuple((f"SLO {texts.limit_text(limit)}", limit) for limit in sorted(wanted) if limit)


def each_run(runs: Sequence[RunSummary], curves: Sequence[Curve], say: Callable[[Curve], str]) -> str:
    """A sentence on the last curve of each run, which is the p99 where there is one; `A:` before it among several."""
    last = {curve.run: curve for curve in curves}
    told = {texts.letter(run): say(curve) for run, curve in sorted(last.items())}
    return " ".join(f"{name}: {text}" if len(runs) > 1 else text for name, text in told.items() if text)


def depth_words(metric: str, curve: Curve) -> str:
    """`45.7 tokens/s without context, 30.4 at 980k: 33 % less.`"""
    first, last = curve.points[0], curve.points[-1]
    if first is last or not first.y.value:
        return ""
    unit = "" if metric == "ttft" else " tokens/s"
    start = "without context" if not first.x else f"at {texts.tokens(int(first.x))}"
    begin, end = texts.figure(metric, first.y.value), texts.figure(metric, last.y.value)
    text = f"{begin}{unit} {start}, {end} at {texts.tokens(int(last.x))}"
    change = last.y.value / first.y.value - 1
    more = f": {percent(abs(change))} {'more' if change > 0 else 'less'}" if 0.005 <= abs(change) <= 1 else ""
    return f"{text}{more}."


def limit_words(curve: Curve, limits: Sequence[tuple[str, float]], axis: Axis) -> str:
    """`p99 stays within SLO 50 ms up to 8 requests at a time.`"""
    parts = []
    for name, limit in limits:
        over = [point.x for point in curve.points if point.y.value > limit]
        best = max((point.x for point in curve.points if not over or point.x < min(over)), default=None)
        upto = f"{best:g} {axis.label}{'' if over else ', the most that was asked'}" if best is not None else ""
        how = f"stays within {name} up to {upto}" if upto else f"is above {name} from the first level on"
        parts.append(f"{curve.name} {how}.")
    return " ".join(parts)
