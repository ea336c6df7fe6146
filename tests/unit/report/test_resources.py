"""The resources used during a run."""

from dataclasses import replace

from fakes.runs import RequestMachine, depth_plans, run, user_plans
from sparkwright.domain.run import Scrape
from sparkwright.domain.units import GIB
from sparkwright.report.html import resource_plots


def test_each_node_has_its_line_and_the_least_is_reported() -> None:
    """The node that is short of memory is named."""
    plots = resource_plots([run(depth_plans((0, 524288)))], ["a"])
    memory = next(plot for plot in plots if plot.id == "memory-time")
    assert [curve.name for curve in memory.curves] == ["spark-1", "spark-2"]
    assert memory.says == "Least memory available: 8.8 GiB on spark-1."


def test_a_peak_is_never_thinned_away() -> None:
    """One moment of a full cache among thousands of scrapes is drawn."""
    one = run(depth_plans((0,)))
    scrapes = tuple(Scrape(n, {"kv_cache_usage": 0.99 if n == 1717 else 0.1}) for n in range(3000))
    plots = resource_plots([replace(one, levels=(replace(one.levels[0], scrapes=scrapes),))], ["a"])
    points = plots[0].curves[0].points
    assert len(points) <= 300 and max(point.y.value for point in points) == 99.0


def test_the_lowest_memory_is_never_thinned_away() -> None:
    """There it is the low that counts."""
    one = run(depth_plans((0,)))
    scrapes = tuple(Scrape(n, {}, {"spark-1": (2 if n == 1717 else 9) * GIB}) for n in range(3000))
    plots = resource_plots([replace(one, levels=(replace(one.levels[0], scrapes=scrapes),))], ["a"])
    assert min(point.y.value for point in plots[0].curves[0].points) == 2 * GIB


def test_an_endpoint_without_metrics_has_no_such_plots() -> None:
    """No line at zero for what nobody saw."""
    one = run(depth_plans((0,)))
    assert resource_plots([replace(one, levels=tuple(replace(level, scrapes=()) for level in one.levels))], ["a"]) == []


def test_what_did_not_change_has_no_plot() -> None:
    """Guards the page against half-empty charts: the table of the server's figures has these values."""
    one = run(depth_plans((0,)))
    scrapes = tuple(Scrape(n, {"kv_cache_usage": 0.009}, {"a": 9 * GIB, "b": 9 * GIB + n}) for n in range(30))
    assert resource_plots([replace(one, levels=(replace(one.levels[0], scrapes=scrapes),))], ["a"]) == []


def test_requests_that_waited_are_drawn_only_if_some_did() -> None:
    """Sixteen users wait where twelve fit."""
    ids = [
        [plot.id for plot in resource_plots([run(user_plans((n,)), machine=RequestMachine())], ["a"])] for n in (4, 16)
    ]
    assert "waiting-time" not in ids[0] and "waiting-time" in ids[1]
