"""`tune` against a full grid: what it reaches, in how much of the grid's time.

    bench_tune.py record GRID.json    every setting of the grid, each at the longest measurement
    bench_tune.py replay GRID.json    the search on what was recorded, many seeds: draws of the recorded repeats
    bench_tune.py search GRID.json    the real command, --searches times, each for a quarter of the grid's time
    bench_tune.py measure GRID.json   record, search and replay, one after the other
    bench_tune.py made-up             the search on made-up speeds, with noise and with settings that interact

On llama.cpp's real server of this machine's CPU, with a GGUF of random weights: what it answers is noise, and takes as
long as any other answer. Any other engine: --recipe, --cluster, --for, --only, --set and --users, as of `tune`.
A recording can be interrupted and continued, or made in parts, each on cores of its own and with a lease of its own:

    taskset -c 0-3 unshare -mn sh -c 'mount -t tmpfs x /run/lock; ip link set lo up; exec "$@"' - \\
        python scripts/bench/bench_tune.py record A.json --part 0 2 --folder /tmp/a
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from importlib import import_module
from math import prod
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import tune_worlds  # noqa: E402

from sparkwright.domain.tuning import Point, Trial, Tried  # noqa: E402
from sparkwright.tune import search as tuning  # noqa: E402

CORES = len(os.sched_getaffinity(0))
THREADS = sorted({1, CORES})
BATCHES = ("serving.batched_tokens=64,256,2048", "flags.ubatch-size=16,64,256,1024")
VALUES = (f"flags.threads={','.join(map(str, THREADS))}", *BATCHES)
NAMES = ("threads", "batch", "ubatch")
SEEDS = 300
LONG = 3  # four repeats at once, see search.repeats
RECIPE = """name: small
title: Random weights
model: {path: small.gguf, served_name: small}
engine: {name: llama-cpp, version: 2026.10.11549, runtime: process, venv: VENV}
nodes: 1
serving: {port: 18099, context: 1024, sequences: 4, batched_tokens: 512}
flags: {n-gpu-layers: 0, threads: THREADS}
"""


def prepared(folder: Path, venv: Path) -> dict[str, str]:
    """Model, recipe and cluster file in the folder; the environment for the command."""
    tiny_gguf = import_module("functional.tiny_gguf")

    shape = {"WIDTH": 256, "LAYERS": 4, "HEADS": 4, "KV_HEADS": 2, "FEED_FORWARD": 768, "CONTEXT": 2048}
    for name, value in shape.items():
        setattr(tiny_gguf, name, value)
    (folder / "models").mkdir(parents=True, exist_ok=True)
    if not (folder / "models/small.gguf").exists():
        tiny_gguf.write_tiny_gguf(folder / "models/small.gguf")
    (folder / "small.yaml").write_text(RECIPE.replace("VENV", str(venv)).replace("THREADS", str(max(1, CORES // 2))))
    paths = f"paths: {{models: {folder}/models, state: {folder}/state}}"
    (folder / "cluster.yaml").write_text(f"nodes: [{{name: here, ssh: local, {paths}}}]\n")
    return {**os.environ, "HOME": str(folder), "SPARKWRIGHT_CLUSTER": str(folder / "cluster.yaml")}


def options(given: argparse.Namespace) -> list[str]:
    words = ["--for", given.goal, "--users", str(given.users), "--seed", given.seed, "--force", given.force]
    return [
        *words,
        *(w for name in given.only for w in ("--setting", name)),
        *(w for v in given.set for w in ("--set", v)),
    ]


async def record(given: argparse.Namespace) -> None:
    """Each point in an order of its own, so that a drift of the machine is no effect of a setting."""
    from sparkwright.adapters import tune_journal
    from sparkwright.app.cluster_options import ClusterOptions
    from sparkwright.app.services import LaunchRequest
    from sparkwright.cli import options as shared
    from sparkwright.cli.console import Quiet
    from sparkwright.cli.tune import TuneLines
    from sparkwright.domain.tuning import TuneGoal
    from sparkwright.recipes.load import load_recipe
    from sparkwright.tune import session as use
    from sparkwright.tune.survey import TuneRequest, TuneSource, survey
    from sparkwright.wiring import bench as tools
    from sparkwright.wiring import services

    source, kept, ends = given.recipe, tree_of(given.file), time.monotonic() + 60 * given.minutes
    text = text_of(source)
    where, recipe = ClusterOptions(), load_recipe(text, source.name)
    async with services(shared.open_cluster(where), where, Quiet()) as there, tools(None) as bench:
        wanted = TuneRequest(TuneGoal(given.goal), tuple(given.only), tuple(given.set), given.users)
        request = LaunchRequest(recipe, recipe.deployment, given.force, supervised=True)
        made = await survey(there, request, TuneSource(text, source.name, recipe.profile, "tuned"), wanted)
        kept["settings"] = [{"name": s.name, "key": s.key, "values": s.values} for s in made.settings]
        own, *points = tuning.points(made.settings, 0)
        Random("order").shuffle(points)
        points = points[given.part[0] :: given.part[1]]
        journal = tune_journal.begin_journal(given.folder / "grid", {"served": ""})
        show = TuneLines(made.settings, wanted.goal, False)
        async with use.searching(there, bench, made, journal, (show, 1e9)) as search:
            if "pace" in kept:
                search.trials.append(Trial(own, 0, Tried.MEASURED, (kept["pace"],)))
            known = [tuple(one["point"]) for one in kept["trials"]]
            for point in (one for one in (own, *points) if one not in known):
                if time.monotonic() > ends:
                    break
                kept["trials"].append(await _recorded(search, bench, point))
                kept["pace"] = search._pace
                save(given.file, kept)


async def _recorded(search: Any, bench: Any, point: Point) -> dict[str, Any]:
    """One row of the grid. The very first trial finds out how much a repeat asks."""
    extra = 0.0
    if not search.trials:
        await search._one(0, point)
        extra = search.trials[-1].seconds - sum(await _took(bench, search.trials[-1]))
    await search._one(LONG, point)
    one = search.trials[-1]
    row = {"point": point, "scores": one.scores, "took": await _took(bench, one), "seconds": one.seconds + extra}
    predicted = search.survey.candidate(point).predicted
    return {**row, "predicted": predicted, "state": one.state, "detail": one.detail}


async def _took(bench: Any, one: Trial) -> list[float]:
    run = await bench.runs.load(one.run) if one.run else None
    return [level.seconds for level in run.levels] if run else []


def text_of(file: Path) -> str:
    return file.read_text()


def tree_of(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {"trials": []}


def save(file: Path, tree: dict[str, Any]) -> None:
    file.write_text(json.dumps(tree))


def merged(*files: Path) -> dict[str, Any]:
    """Parts of a grid; what several of them have counts once."""
    trees = [tree_of(file) for file in files]
    trials = {tuple(one["point"]): one for tree in trees for one in tree["trials"]}
    return {**trees[0], "trials": list(trials.values())}


def replay(*files: Path) -> None:
    """Prints the mean recorded score of each seed's chosen setting, as a share of the grid's best.

    Where many settings are as fast as each other that is too strict, see `compare_fairly`.
    """
    world = tune_worlds.recorded(merged(*files))
    most = max(world.truth.values())
    own = world.truth[(0,) * len(world.settings)] / most
    near = sum(one >= 0.95 * most for one in world.truth.values())
    print(
        f"grid: {len(world.truth)} settings, {world.whole:.0f} s; best {most:.1f}, as it is {own:.1%} of it, ", end=""
    )
    print(f"{near} settings within 5 %, median {median(world.truth.values()) / most:.1%}")
    print_found([tune_worlds.searched(world, seed) for seed in range(SEEDS)])
    compare_fairly(merged(*files))


def compare_fairly(tree: dict[str, Any]) -> None:
    """Compares the searches' choices with the whole grid's, both by half of the repeats, measured by the others."""
    found: dict[str, list[float]] = {"a quarter": [], "its end": []}
    for n, (world, grid) in enumerate(splits := list(tune_worlds.halves(tree))):
        for seed in range(n, SEEDS, len(splits)):
            one = tune_worlds.searched(world, seed)
            found["a quarter"].append(one.quarter / grid)
            found["its end"].append(one.end / grid)
    print("  by repeats that decided nothing, against the setting that the whole grid decides for: ", end="")
    print("; ".join(f"after {name} {fmean(rows):.1%}" for name, rows in found.items()), "in the mean")


def print_found(rows: list[tune_worlds.SearchOutcome]) -> None:
    for name, shares in (("a quarter", [one.quarter for one in rows]), ("its end", [one.end for one in rows])):
        good = sum(share >= 0.95 for share in shares) / len(shares)
        print(f"  after {name}: 95 % of the best or more in {good:.1%} of {len(rows)} searches; ", end="")
        print(f"median {median(shares):.1%}, least {min(shares):.1%}")
    starts, times = [one.starts for one in rows], [one.time for one in rows]
    print(f"  end: median {median(starts):.0%} of the starts, {median(times):.0%} of the time", flush=True)


def search(given: argparse.Namespace, environ: dict[str, str]) -> None:
    """The real command with seeds of its own and a quarter of the grid's time; its time is that on the wall."""
    tree = merged(given.file, *given.more)
    truth, whole = tune_worlds.recorded(tree).truth, sum(one["seconds"] for one in tree["trials"])
    most = max(truth.values())
    budget = ["--time", f"{max(60, whole / 4):.0f}s"]
    for seed in range(first := int(given.seed), first + given.searches):
        began, given.seed = time.monotonic(), str(seed)
        call = [sys.executable, "-m", "sparkwright", "tune", str(given.recipe), "--json", *options(given), *budget]
        ended = subprocess.run(call, env=environ, stdout=subprocess.PIPE, text=True)
        if ended.returncode not in (0, 1):  # 1: nothing but the recipe's own was measured
            sys.exit(f"error: {' '.join(call)}: exit {ended.returncode}\n{ended.stdout}")
        found = json.loads(ended.stdout)
        (given.folder / f"search-{seed}.json").write_text(ended.stdout)
        took, best = time.monotonic() - began, found["best"] or {}
        point = tuple(one["values"].index(best.get(one["key"], one["values"][0])) for one in tree["settings"])
        reached = f"{truth[point] / most:.1%} of the grid's best" if point in truth else "not in the grid"
        counted = f"{len(found['trials'])} trials in {took:.0f} s, {took / whole:.1%} of the grid's {whole:.0f} s"
        print(f"search {seed}: {best or 'as it is'}: {reached}; {counted}", flush=True)


def made_up(seeds: range) -> None:
    for levels, pairs, noise, start in tune_worlds.world_kinds():
        size = prod(levels)
        print(f"{size} settings, pairs {pairs:g}, repeats differ by {noise:.0%}, a start lasts {start:g} repeats")
        worlds = (tune_worlds.made_up(levels, seed, (pairs, noise), start) for seed in seeds)
        print_found([tune_worlds.searched(world, seed) for world, seed in zip(worlds, seeds, strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "replay", "search", "measure", "made-up"))
    parser.add_argument("file", nargs="?", type=Path, default=Path("grid.json"))
    parser.add_argument("more", nargs="*", type=Path, help="of replay and search: other parts of the grid")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/sparkwright-bench-tune"))
    parser.add_argument("--venv", type=Path, default=Path(sys.prefix), help="of llama.cpp's server, without --recipe")
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--cluster", type=Path)
    parser.add_argument("--for", dest="goal", default="throughput")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--searches", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e6, help="of record: no setting is begun after these")
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("K", "OF"), help="record each OFth only")
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 100), metavar=("FROM", "TO"), help="of made-up")
    parser.add_argument("--force", default="a bench of tune", help="reason, as for `up`")
    given = parser.parse_args()
    if given.what == "replay":
        replay(given.file, *given.more)
        return
    if given.what == "made-up":
        made_up(range(*given.seeds))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "HOME": str(given.folder)} | ({} if given.recipe else prepared(given.folder, given.venv))
    if given.recipe is None:
        given.recipe, given.only, given.set = given.folder / "small.yaml", list(NAMES), list(VALUES)
    environ["SPARKWRIGHT_CLUSTER"] = str(given.cluster or environ.get("SPARKWRIGHT_CLUSTER", ""))
    if given.what in ("record", "measure"):
        os.environ.update(environ)
        asyncio.run(record(given))
    if given.what in ("search", "measure"):
        search(given, environ)
    if given.what == "measure":
        replay(given.file)


if __name__ == "__main__":
    main()
