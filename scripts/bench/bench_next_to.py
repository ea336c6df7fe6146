"""The cost of a copy of weights for the users of an engine that serves on the same two nodes."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from bench_copies import CopyBench
from bench_measures import BenchFigure
from bench_nodes import Nodes

from sparkwright.domain.cluster import Transfer

LIMIT, REQUESTS = 40_000_000, 600
_LOAD = """name: during-a-copy
title: first tokens of four users
repeats: 1
deadline: 60s
levels:
  - {{name: 4 users, single: {{prompt: 256, output: 8}}, concurrency: 4, requests: {requests}}}
"""
Way = Callable[[], object]


def list_ways(bench: CopyBench, limit: int) -> dict[str, Way]:
    """The work next to the engine; `computing` shows the machine's part in it: on few CPUs only."""
    copy = Transfer(streams=2, limit=limit, yields=True)
    return {
        "copy": lambda: bench.push(copy),
        "rsync": lambda: bench.rsync(limit),
        "computing": lambda: bench.burn(bench.size / limit),
    }


def served_next_to(
    nodes: Nodes, chosen: dict[str, Way], repeats: int, requests: int = REQUESTS
) -> Iterator[list[BenchFigure]]:
    """TTFT p99 of the simulator, against the same load alone: one run before each round, one after it."""
    profile = nodes.folder / "load.yaml"
    profile.write_text(_LOAD.format(requests=requests))
    nodes.run("up", str(nodes.recipe), "--json", "--force", "a bench of copies next to a simulated engine")
    found: dict[str, list[float]] = {name: [] for name in chosen}
    try:
        _first_token(nodes, profile)
        alone = [_first_token(nodes, profile)]
        for _ in range(repeats):
            for name, way in chosen.items():
                found[name].append(_during(nodes, profile, way))
            alone.append(_first_token(nodes, profile))
            yield _figures(nodes.kind, alone, found)
    finally:
        nodes.run("down", "recipe")


def _figures(where: str, alone: list[float], found: dict[str, list[float]]) -> list[BenchFigure]:
    usual = statistics.median(alone)
    base = f"alone {usual * 1e3:.1f} ms ({min(alone) * 1e3:.1f}-{max(alone) * 1e3:.1f})"
    names = {"copy": "a copy", "rsync": "rsync", "computing": "computing"}
    ratios = {name: tuple(one / usual for one in took) for name, took in found.items()}
    return [
        BenchFigure(f"TTFT p99 with {names[name]}", where, values, "x", 1.1, base) for name, values in ratios.items()
    ]


def _during(nodes: Nodes, profile: Path, work: Way) -> float:
    """work: again and again until the load has ended."""
    over = Event()

    def worked() -> None:
        while not over.is_set():
            work()

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(worked)
        try:
            found = _first_token(nodes, profile)
        finally:
            over.set()
        working.result()
    return found


def _first_token(nodes: Nodes, profile: Path) -> float:
    """The time to the first token, s. A run that the client's lag makes invalid counts: where all share the CPUs it
    means little."""
    words = nodes.argv("bench", "recipe", "--profile", str(profile), "--json")
    done = subprocess.run(words, capture_output=True, text=True, env=nodes.environment)
    found = json.loads(done.stdout or "{}")
    if not found.get("runs"):
        raise RuntimeError(f"no load: {done.stderr[-500:]}")
    return float(found["runs"][0]["levels"][0]["metrics"]["ttft"]["p99"]["value"])
