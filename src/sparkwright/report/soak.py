"""A soak on its page: what was found first, then memory, latency and probes over time."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sparkwright.domain.evaluation import ProbeState
from sparkwright.domain.run import Run
from sparkwright.domain.soak import Endurance, Point
from sparkwright.domain.summary import Interval
from sparkwright.domain.units import MIB, duration, gib
from sparkwright.report import series
from sparkwright.report.html import resource_plots
from sparkwright.report.page_parts import Headline
from sparkwright.report.series import Axis, Curve, Plot
from sparkwright.report.tables import Table

Soaks = Mapping[str, Endurance]
_MOST = 300
_TIME = Axis("time since the run began", "s")


def soak_plots(runs: Sequence[Run], soaks: Soaks) -> list[Plot]:
    """The plots of soaks over each other if there are several; the rest of each run is in its tables."""
    known = [(number, run, soaks[run.id]) for number, run in enumerate(runs) if run.id in soaks]
    many, plots = len(known) > 1, list[Plot]()
    for name, title in (("ttft", "Time to first token"), ("tpot", "Time per output token")):
        found = [(n, run, soak.latency[name]) for n, run, soak in known if name in soak.latency]
        curves = tuple(_curve(run.id if many else title, n, 0, points) for n, run, points in found)
        says = " ".join(
            f"{shift.change:+.0%} from {duration(shift.at)} on."
            for *_, soak in known
            for shift in soak.shifts
            if shift.metric == name
        )
        axis = Axis("times the usual of the same requests")
        plots += [Plot(f"{name}-time", f"{title} over time", _TIME, axis, curves, says)] if curves else []
    grown = [(n, run, one) for n, run, soak in known for one in soak.memory if one.process]
    if grown:
        curves = tuple(_curve(f"{one.of}, {run.id}" if many else one.of, n, 0, one.points) for n, run, one in grown)
        plots.append(Plot("process-time", "Memory of the server's process", _TIME, Axis("resident", "B"), curves))
    probes = [(n, run, tuple(_probes(run))) for n, run, _ in known]
    if any(len(points) > 1 for *_, points in probes):
        curves = tuple(_curve(run.id if many else "probes", n, 0, points) for n, run, points in probes if points)
        plots.append(Plot("probes-time", "Probes that passed", _TIME, Axis("of those judged", "%"), curves))
    return [*plots, *resource_plots([run for _, run, _ in known], [run.id for _, run, _ in known])]


def _curve(name: str, run: int, style: int, points: Sequence[Point]) -> Curve:
    step = -(-len(points) // _MOST)
    kept = (series.Point(round(at, 1), Interval(value, value, value)) for at, value in points[::step])
    return Curve(name, run, style, tuple(kept), True)


def _probes(run: Run) -> Iterator[Point]:
    outcomes = run.evaluation.outcomes if run.evaluation else ()
    for at in dict.fromkeys(one.at for one in outcomes):
        judged = [one.state for one in outcomes if one.at == at and one.state in (ProbeState.PASSED, ProbeState.FAILED)]
        if judged:
            yield at, 100.0 * judged.count(ProbeState.PASSED) / len(judged)


def soak_tiles(run: Run, soak: Endurance) -> list[Headline]:
    """The tiles of a soak: its length and size, failures, and the speed of memory loss."""
    failed = sum(soak.errors.values())
    value, _, unit = duration(soak.seconds).partition(" ")
    found = [
        Headline("Under load", value, unit, "", ""),
        Headline("Requests", f"{soak.requests:,}", "", "", f"{failed:,} failed" if failed else "none failed"),
        Headline("Found", f"{len(soak.findings)}", "", "", ", ".join(dict.fromkeys(one.kind for one in soak.findings))),
        Headline("Restarts", f"{soak.restarts}", "", "", "of the server"),
    ]
    worst = max(soak.memory, key=lambda one: one.per_hour.value, default=None)
    if worst:
        value, _, unit = gib(worst.per_hour.value).partition(" ")
        spread = f"{gib(worst.per_hour.low)} to {gib(worst.per_hour.high)}"
        found.append(Headline("Memory less each hour", value, unit, spread, worst.of))
    return found


def found_table(soak: Endurance) -> Table:
    rows = tuple((one.kind, one.text) for one in soak.findings) or (
        ("nothing", "no leak, drift, fault or wrong answer"),
    )
    return Table("Found", ("found", "what"), (*rows, *(("unknown", text) for text in soak.unknown)))


def memory_table(soak: Endurance) -> Table:
    rows = tuple(
        (
            one.of,
            _spread(one.per_hour, gib),
            _spread(one.per_request, lambda size: f"{size / MIB:.3g} MiB") if one.per_request else "unknown",
            "yes" if one.leak else "not above noise",
            duration(one.left) if one.left is not None else "",
        )
        for one in soak.memory
    )
    return Table("Memory", ("memory of", "less each hour", "less each request", "leak", "time until the floor"), rows)


def _spread(one: Interval, say: Callable[[float], str]) -> str:
    return f"{say(one.value)} ({say(one.low)} to {say(one.high)})"


def events_table(run: Run) -> Table:
    found = run.evaluation.events if run.evaluation else ()
    rows = tuple((duration(max(0.0, one.at)), one.kind, one.text) for one in found)
    return Table("Events", ("after", "event", "what"), rows)
