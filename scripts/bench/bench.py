"""`make bench`: what sparkwright adds to the engine's own time, in one run, next to what it is compared to.

bench.py [--json] [--repeats N] [--no-testbed]. Nothing is asserted: it prints figures, their spread and the target.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field

import bench_measures as measures
import bench_nodes as where
from bench_copies import CopyBench, capped, curves, measure_rates, small_files
from bench_diagnose import logs_take
from bench_measures import BenchFigure
from bench_next_to import LIMIT, list_ways, served_next_to
from bench_nodes import Nodes
from bench_pairs import testbed_pair
from bench_plans import plans_take

FACTS_REPEATS = 3  # times --repeats: one takes a fraction of a second
EIGHT = 8


@dataclass
class BenchReport:
    figures: list[BenchFigure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="the figures as JSON on stdout")
    parser.add_argument("--repeats", type=int, default=5, help="how often each is taken (default 5)")
    parser.add_argument("--no-testbed", action="store_true", help="leave the two-node testbed alone")
    chosen = parser.parse_args(words)
    report = BenchReport()
    for work in bench_steps(chosen.repeats, not chosen.no_testbed):
        run(work, report)
    print(as_json(report) if chosen.json else as_text(report))
    return 0


Step = tuple[str, Callable[[BenchReport], None]]


def bench_steps(repeats: int, testbed: bool) -> Iterator[Step]:
    yield "start of the command", lambda report: report.figures.append(measures.help_takes(2 * repeats))
    for verb in ("status", "check", "plan simulator"):
        yield f"start of {verb}", lambda report, verb=verb: report.figures.append(measures.starts_take(verb, repeats))  # type: ignore[misc]
    yield "logs", lambda report: report.figures.extend(logs_take(repeats))
    yield "plans", lambda report: report.figures.extend(plans_take(repeats))
    yield "embedded nodes", lambda report: on_nodes(where.embedded(free_port), report, repeats)
    yield "nodes behind sshd on loopback", lambda report: on_nodes(where.over_ssh(free_port), report, repeats)
    yield "facts of many nodes", lambda report: facts_of_many(report, repeats)
    yield "check of four nodes", lambda report: check_of_four(report, repeats)
    if testbed:
        yield "testbed", lambda report: on_nodes(where.testbed(free_port), report, repeats)
        yield "copies", lambda report: copies(report, min(repeats, 3))
        yield "a copy next to an engine", lambda report: copy_next_to_an_engine(report, min(repeats, 3))


def run(step: Step, report: BenchReport) -> None:
    """Runs a step. A measurement that cannot run here is listed with the reason; a bug of the bench is not hidden."""
    name, work = step
    print(f"bench: {name} ...", file=sys.stderr, flush=True)
    try:
        work(report)
    except RuntimeError as error:
        report.left_out.append(f"{name}: {error}")


def on_nodes(context: AbstractContextManager[Nodes], report: BenchReport, repeats: int) -> None:
    with context as nodes:
        report.figures.append(measures.up_adds(nodes, repeats))
        report.figures.append(measures.status_takes(nodes, repeats))


def copies(report: BenchReport, repeats: int) -> None:
    with where.testbed(free_port) as nodes:
        bench = CopyBench(testbed_pair(nodes.bed))
        for part in (measure_rates, curves, small_files, capped):
            *_, figures = part(bench, repeats)
            report.figures += figures


def copy_next_to_an_engine(report: BenchReport, repeats: int) -> None:
    with where.testbed(free_port) as nodes:
        bench = CopyBench(testbed_pair(nodes.bed))
        bench.fill()
        chosen = list_ways(bench, LIMIT)
        *_, figures = served_next_to(nodes, chosen, repeats)
        report.figures += figures


def facts_of_many(report: BenchReport, repeats: int) -> None:
    times = repeats * FACTS_REPEATS
    with where.over_ssh(free_port, EIGHT) as nodes:
        cluster = nodes.local
        assert cluster
        taken = measures.facts_of(nodes, cluster, (1, 2, EIGHT), times)
        replayed = measures.facts_replayed(nodes, cluster, times)
    one = statistics.median(taken[1])
    report.figures += [
        BenchFigure("facts of two", "ssh", taken[2], "s", 1.0, f"one {one:.3f} s", "connections open"),
        ratio_figure(
            "facts of eight", "ssh", taken, f"all eight nodes' work runs on this machine's {os.cpu_count()} CPUs"
        ),
        ratio_figure(
            "facts of eight", "replayed", replayed, "answers of one node replayed in its time: our own work only"
        ),
    ]


def check_of_four(report: BenchReport, repeats: int) -> None:
    with where.over_ssh(free_port, 4) as nodes:
        report.figures.append(measures.check_takes(nodes, repeats))


def ratio_figure(name: str, kind: str, taken: dict[int, tuple[float, ...]], note: str) -> BenchFigure:
    one = statistics.median(taken[1])
    values = tuple(value / one for value in taken[EIGHT])
    base = f"one {one:.3f} s, eight {statistics.median(taken[EIGHT]):.3f} s"
    return BenchFigure(name, kind, values, "x", 1.3, base, note)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def conditions() -> dict[str, object]:
    return {"cpus": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version(), "simulated": True}


def as_json(report: BenchReport) -> str:
    rows = [asdict(one) | {"median": one.median, "within": one.median <= one.target} for one in report.figures]
    return json.dumps({"conditions": conditions(), "figures": rows, "left_out": report.left_out}, indent=2)


def as_text(report: BenchReport) -> str:
    here = conditions()
    lines = [f"SIMULATED engine and nodes; {here['cpus']} CPUs, load {here['load']:.1f}, Python {here['python']}", ""]
    lines += table_lines(
        [("", "on", "median", "spread", "target", "", "compared to"), *map(figure_row, report.figures)]
    )
    lines += ["", *(f"{one.name} ({one.where}): {one.note}" for one in report.figures if one.note)]
    lines += [f"left out: {reason}" for reason in report.left_out]
    return "\n".join(lines)


def figure_row(one: BenchFigure) -> tuple[str, ...]:
    spread = f"{min(one.values):.2f}-{max(one.values):.2f} ({len(one.values)})"
    verdict = "ok" if one.median <= one.target else "OVER"
    return one.name, one.where, f"{one.median:.2f} {one.unit}", spread, f"{one.target:g} {one.unit}", verdict, one.base


def table_lines(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
