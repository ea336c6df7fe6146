"""Copies of weights between two nodes on one machine with many CPUs: namespaces, each with CPUs of its own. Takes root.

    bench_here.py --out FILE.json [--work FOLDER] [--only PART]... [--size MIB] [--repeats N] [--seconds S]

Needs an OpenSSH server, rsync, iproute2 and util-linux on PATH. FILE.json, and FILE.md next to it, are written after
each round; a part that fails is listed with the reason and costs the others nothing. --seconds: a round begins only
where it will end within its part's share of them; the first always does. FOLDER is removed first, and is outside /tmp,
of which each node has its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import bench_copies as copies
from bench_copies import CopyBench
from bench_measures import BenchFigure
from bench_next_to import list_ways, served_next_to
from bench_nodes import Nodes
from bench_pairs import Pair, namespaces

Rounds = Iterator[list[BenchFigure]]
# Of --seconds, as shares: most for what has a target
SHARES = {"rates": 6, "memory": 4, "small": 3, "next-to": 8, "streams": 4, "capped": 2}


@dataclass
class HereReport:
    out: Path
    conditions: dict[str, Any]
    figures: dict[str, list[BenchFigure]] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def write(self) -> None:
        rows = {
            part: [asdict(one) | {"median": one.median, "within": one.median <= one.target} for one in figures]
            for part, figures in self.figures.items()
        }
        found = {"conditions": self.conditions, "figures": rows, "seconds": self.took, "left_out": self.left_out}
        self.out.write_text(json.dumps(found, indent=2) + "\n")
        self.out.with_suffix(".md").write_text("\n".join(self._lines()) + "\n")

    def _lines(self) -> Iterator[str]:
        yield ", ".join(f"{name} {value}" for name, value in self.conditions.items())
        yield from ("", "| | median (spread, rounds) | target | | |", "|---|---|---|---|---|")
        for one in (one for figures in self.figures.values() for one in figures):
            verdict = "ok" if one.median <= one.target else "missed"
            values = f"{one.median:.2f} {one.unit} ({min(one.values):.2f}-{max(one.values):.2f}, {len(one.values)})"
            yield f"| {one.name} | {values} | {one.target:.2f} {one.unit} | {verdict} | {one.base} |"
        yield from ("", *(f"left out: {part}: {reason}" for part, reason in self.left_out.items()))


def main(words: list[str]) -> int:
    asked = _arguments(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the nodes end with this process
    shutil.rmtree(asked.work, ignore_errors=True)
    with namespaces(asked.work) as (pair, nodes):
        report = HereReport(asked.out, _conditions(pair, asked.size))
        until = time.monotonic() + asked.seconds
        for n, part in enumerate(asked.only):
            share = SHARES[part] / sum(SHARES[one] for one in asked.only[n:])
            _measure(part, _parts(asked, pair, nodes)[part], (until - time.monotonic()) * share, report)
    shutil.rmtree(asked.work, ignore_errors=True)
    print(asked.out.with_suffix(".md").read_text())
    return len(report.left_out)


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON; the same as Markdown next to it")
    parser.add_argument("--work", type=Path, default=Path("/var/tmp/sparkwright-copies"), help="is removed first")
    parser.add_argument("--only", action="append", choices=list(SHARES), help="a part (default: all)")
    parser.add_argument("--size", type=int, default=1024, help="MiB of a copy (default 1024)")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of each part at most (default 5)")
    parser.add_argument("--seconds", type=float, default=180, help="for all parts (default 180)")
    parser.add_argument("--limit", type=int, default=500, help="MB/s of a copy next to an engine (default 500)")
    parser.add_argument("--requests", type=int, default=400, help="of each load (default 400)")
    asked = parser.parse_args(words)
    asked.only = asked.only or list(SHARES)
    return asked


def _parts(asked: argparse.Namespace, pair: Pair, nodes: Nodes) -> dict[str, Callable[[], Rounds]]:
    size, repeats = asked.size << 20, asked.repeats
    return {
        "rates": lambda: copies.measure_rates(CopyBench(pair, size), repeats),
        "memory": lambda: copies.measure_rates(CopyBench(pair, 2 * size, copies.MEMORY), repeats, disk=False),
        "small": lambda: copies.small_files(CopyBench(pair), repeats),
        "next-to": lambda: _next_to(asked, pair, nodes),
        "streams": lambda: copies.curves(CopyBench(pair, size), repeats),
        "capped": lambda: copies.capped(CopyBench(pair), min(repeats, 3), 100),
    }


def _next_to(asked: argparse.Namespace, pair: Pair, nodes: Nodes) -> Rounds:
    """The rounds in memory: a simulated engine's users notice nothing of the disk."""
    bench = CopyBench(pair, asked.size << 20, copies.MEMORY)
    bench.fill()
    chosen = list_ways(bench, asked.limit * 1_000_000)
    del chosen["computing"]
    return served_next_to(nodes, chosen, asked.repeats, asked.requests)


def _measure(part: str, rounds: Callable[[], Rounds], seconds: float, report: HereReport) -> None:
    began = time.monotonic()
    print(f"bench: {part} ...", file=sys.stderr, flush=True)
    try:
        for figures in (work := rounds()):
            report.figures[part] = figures
            report.took[part] = round(time.monotonic() - began, 1)
            report.write()
            spent = time.monotonic() - began
            if spent + spent / max(len(figures[0].values), 1) > seconds:
                break
        work.close()  # type: ignore[attr-defined]
    except (RuntimeError, OSError, KeyError, ValueError) as error:
        report.left_out[part] = f"{type(error).__name__}: {error}"
    report.took[part] = round(time.monotonic() - began, 1)
    report.write()


def _conditions(pair: Pair, size: int) -> dict[str, Any]:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "CPU": models[0].split(":")[1].strip() if models else platform.machine(),
        "CPUs": os.cpu_count(),
        "nodes": pair.note,
        "copy": f"{size} MiB in {copies.FILES} files",
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "engine": "SIMULATED",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
