"""What the server and its nodes used while a run went on: the KV cache and memory over time."""

from collections.abc import Callable, Iterator, Sequence

from sparkwright.domain.run import Run, Scrape
from sparkwright.domain.summary import Interval
from sparkwright.domain.units import gib
from sparkwright.report.series import Axis, Curve, Plot, Point
from sparkwright.report.words import percent

_MOST = 300
_LEAST_KV = 1.0  # percent in use: below it the plot is empty
_LEAST_CHANGE = 0.01  # of the memory available: below it the plot is a flat line
_TIME = Axis("time since the run began", "s")


def resource_plots(runs: Sequence[Run], names: Sequence[str]) -> list[Plot]:
    """KV cache in use, requests waiting, and memory available by node; only what was seen and changed."""
    kv = _figure_curves(runs, names, "kv_cache_usage", 100.0)
    waiting = _figure_curves(runs, names, "requests_waiting", 1.0)
    memory = _memory_curves(runs, names)
    plots = []
    if (most := max(_values(kv), default=0.0)) >= _LEAST_KV:
        says = f"At most {percent(most / 100) if most >= 10 else f'{most:.1f} %'} of the KV cache was in use."
        plots.append(Plot("kv-time", "KV cache during the run", _TIME, Axis("in use", "%"), kv, says))
    if any(_values(waiting)):
        plots.append(Plot("waiting-time", "Requests waiting in the server", _TIME, Axis("requests"), waiting))
    if memory and min(_values(memory)) < (1 - _LEAST_CHANGE) * max(_values(memory)):
        says = f"{_least(memory)}."
        plots.append(Plot("memory-time", "Memory during the run", _TIME, Axis("available", "B"), memory, says))
    return plots


def _values(curves: Sequence[Curve]) -> list[float]:
    return [point.y.value for curve in curves for point in curve.points]


def _figure_curves(runs: Sequence[Run], names: Sequence[str], word: str, scale: float) -> tuple[Curve, ...]:
    curves = []
    for number, run in enumerate(runs):
        seen = [(at, scrape.figures[word] * scale) for at, scrape in scrapes(run) if word in scrape.figures]
        if seen:
            curves.append(Curve(names[number] if len(runs) > 1 else "server", number, 0, _points(seen, max), True))
    return tuple(curves)


def _memory_curves(runs: Sequence[Run], names: Sequence[str]) -> tuple[Curve, ...]:
    curves = []
    for number, run in enumerate(runs):
        nodes = dict.fromkeys(node for _, scrape in scrapes(run) for node in scrape.memory)
        for style, node in enumerate(nodes):
            seen = [(at, float(scrape.memory[node])) for at, scrape in scrapes(run) if node in scrape.memory]
            name = f"{node}, {names[number]}" if len(runs) > 1 else node
            curves.append(Curve(name, number, style, _points(seen, min), True))
    return tuple(curves)


def scrapes(run: Run) -> Iterator[tuple[float, Scrape]]:
    """With seconds since the run began."""
    for level in sorted(run.levels, key=lambda level: level.began):
        yield from ((level.began + scrape.at - run.began, scrape) for scrape in level.scrapes)


def _points(seen: Sequence[tuple[float, float]], extreme: Callable[..., tuple[float, float]]) -> tuple[Point, ...]:
    """Of each stretch of time its extreme: a peak is never thinned away."""
    step = -(-len(seen) // _MOST)
    kept = (extreme(seen[n : n + step], key=lambda one: one[1]) for n in range(0, len(seen), step))
    return tuple(Point(round(at, 1), Interval(value, value, value)) for at, value in kept)


def _least(curves: Sequence[Curve]) -> str:
    curve = min(curves, key=lambda curve: min(point.y.value for point in curve.points))
    return f"Least memory available: {gib(min(point.y.value for point in curve.points))} on {curve.name}"
