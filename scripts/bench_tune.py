"""`tune` against a full grid: what it reaches, in how much of the grid's time.

    scripts/bench_tune.py record GRID.json    every setting of the grid, each at the longest measurement
    scripts/bench_tune.py replay GRID.json    the search on what was recorded, many seeds: draws of the recorded repeats
    scripts/bench_tune.py search GRID.json    the real command, --searches times, by the figures of the recorded grid
    scripts/bench_tune.py measure GRID.json   record, search and replay, one after the other
    scripts/bench_tune.py made-up             the search on made-up speeds, with noise and with settings that interact

On llama.cpp's real server of this machine's CPU, with a GGUF of random weights: what it answers is noise, and takes as
long as any other answer. Any other engine: --recipe, --cluster, --for, --only, --set and --users, as of `tune`.
A recording can be interrupted and continued.
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
from itertools import pairwise
from math import exp, prod
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from sparkwright.domain.tuning import Point, Setting, Trial, Tried  # noqa: E402
from sparkwright.loadgen import halving  # noqa: E402

THREADS = sorted({max(1, (os.cpu_count() or 1) // share) for share in (2, 4, 8)})
BATCHES = ("serving.batched_tokens=64,256,2048", "flags.ubatch-size=16,64,256,1024")
VALUES = (f"flags.threads={','.join(map(str, THREADS))}", *BATCHES)
NAMES = ("threads", "batch", "ubatch")
SEEDS = 300
RECIPE = """name: small
title: Random weights
model: {path: small.gguf, served_name: small}
engine: {name: llama-cpp, version: 2026.10.11549, runtime: process, venv: VENV}
nodes: 1
serving: {port: 18099, context: 1024, sequences: 4, batched_tokens: 512}
flags: {n-gpu-layers: 0}
"""


def prepared(folder: Path) -> dict[str, str]:
    """Model, recipe and cluster file in the folder; the environment for the command."""
    tiny_gguf = import_module("functional.tiny_gguf")

    shape = {"WIDTH": 256, "LAYERS": 4, "HEADS": 4, "KV_HEADS": 2, "FEED_FORWARD": 768, "CONTEXT": 2048}
    for name, value in shape.items():
        setattr(tiny_gguf, name, value)
    (folder / "models").mkdir(parents=True, exist_ok=True)
    if not (folder / "models/small.gguf").exists():
        tiny_gguf.write_tiny_gguf(folder / "models/small.gguf")
    (folder / "small.yaml").write_text(RECIPE.replace("VENV", str(Path(sys.prefix))))
    paths = f"paths: {{models: {folder}/models, state: {folder}/state}}"
    (folder / "cluster.yaml").write_text(f"nodes: [{{name: here, ssh: local, {paths}}}]\n")
    return {**os.environ, "HOME": str(folder), "SPARKWRIGHT_CLUSTER": str(folder / "cluster.yaml")}


def options(given: argparse.Namespace) -> list[str]:
    words = ["--for", given.goal, "--users", str(given.users), "--seed", given.seed, "--force", given.force]
    return [
        *words,
        *(w for name in given.only for w in ("--only", name)),
        *(w for v in given.set for w in ("--set", v)),
    ]


async def record(given: argparse.Namespace) -> None:
    """Each point in an order of its own, so that a drift of the machine is no effect of a setting."""
    from sparkwright.adapters import tune_journal
    from sparkwright.app import tune_session as use
    from sparkwright.app.cluster_options import ClusterOptions
    from sparkwright.app.services import LaunchRequest
    from sparkwright.app.tune_survey import Source, TuneRequest, survey
    from sparkwright.cli import options as shared
    from sparkwright.cli.console import Quiet
    from sparkwright.cli.tune import Lines
    from sparkwright.domain.tuning import TuneGoal
    from sparkwright.recipes.load import load_recipe
    from sparkwright.wiring import bench as tools
    from sparkwright.wiring import services

    file, source = given.file, given.recipe
    text, kept = text_of(source), tree_of(file)
    where, recipe = ClusterOptions(), load_recipe(text, source.name)
    known = kept["trials"]
    async with services(shared.open_cluster(where), where, Quiet()) as there, tools(None) as bench:
        wanted = TuneRequest(TuneGoal(given.goal), tuple(given.only), tuple(given.set), given.users)
        request = LaunchRequest(recipe, recipe.deployment, given.force, supervised=True)
        made = await survey(there, request, Source(text, source.name, recipe.profile, "tuned"), wanted)
        own, *points = halving.points(made.settings, 0)
        Random("order").shuffle(points)
        journal = tune_journal.begin(given.folder / "grid", {"served": ""})
        show = Lines(made.settings, wanted.goal, False)
        async with use.searching(there, bench, made, journal, (show, 1e9)) as search:
            for point in (own, *points):
                if list(point) in [one["point"] for one in known]:
                    continue
                await search._one(halving.RUNGS - 1, point)
                one = search.trials[-1]
                run = await bench.runs.load(one.run) if one.run else None
                took = [level.seconds for level in run.levels] if run else []
                row = {"point": one.point, "scores": one.scores, "took": took, "seconds": one.seconds}
                known.append({**row, "state": one.state, "detail": one.detail})
                settings = [{"name": s.name, "key": s.key, "values": s.values} for s in made.settings]
                save(file, {"settings": settings, "trials": known})


def text_of(file: Path) -> str:
    return file.read_text()


def tree_of(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {"trials": []}


def save(file: Path, tree: dict[str, Any]) -> None:
    file.write_text(json.dumps(tree))


def replay(file: Path) -> None:
    """Of each seed: the mean of all recorded repeats of what the search chose, as a share of the grid's best."""
    tree = json.loads(file.read_text())
    settings = tuple(Setting(one["name"], one["key"], tuple(one["values"])) for one in tree["settings"])
    table, truth, _ = truth_of(tree)
    most, own = max(truth.values()), table[(0,) * len(settings)]
    times = max(1, round(2.0 / fmean(own["took"])))  # `tune` has repeats last two seconds, as often as that takes
    whole = sum(fixed(one) + times * sum(one["took"]) for one in tree["trials"])
    shares, spent, counts = [], [], []
    for seed in range(SEEDS):
        trials = searched(settings, table, seed, times)
        chosen = halving.best(trials)
        assert chosen is not None
        shares.append(truth[chosen] / most)
        spent.append(sum(one.seconds for one in trials) / whole)
        counts.append(len(trials))
    worst = truth[(0,) * len(settings)] / most
    good = sum(one >= 0.95 for one in shares) / len(shares)
    print(f"grid: {len(table)} settings, {whole:.0f} s; best {most:.1f}, as it is {worst:.1%} of it")
    print(
        f"search: {median(counts):.0f} trials; reaches median {median(shares):.1%}, least {min(shares):.1%}, ", end=""
    )
    print(f"at least 95 % in {good:.1%} of {SEEDS} seeds; time median {median(spent):.1%}, most {max(spent):.1%}")


def truth_of(tree: dict[str, Any]) -> tuple[dict[Point, dict[str, Any]], dict[Point, float], float]:
    """The grid's measured points, what each is worth by all its repeats, and the seconds that the grid took."""
    table = {tuple(one["point"]): one for one in tree["trials"] if one["state"] == "measured"}
    truth = {point: fmean(one["scores"]) for point, one in table.items()}
    return table, truth, sum(one["seconds"] for one in tree["trials"])


def search(given: argparse.Namespace, environ: dict[str, str]) -> None:
    """The real command with seeds of its own, as a user starts it; its time is that on the wall."""
    tree = tree_of(given.file)
    _, truth, whole = truth_of(tree)
    most = max(truth.values())
    for seed in range(1, given.searches + 1):
        began, given.seed = time.monotonic(), str(seed)
        call = [sys.executable, "-m", "sparkwright", "tune", str(given.recipe), "--json", *options(given)]
        found = json.loads(subprocess.run(call, env=environ, check=True, stdout=subprocess.PIPE).stdout)
        took, best = time.monotonic() - began, found["best"] or {}
        point = tuple(one["values"].index(best.get(one["key"], one["values"][0])) for one in tree["settings"])
        reached = f"{truth[point] / most:.1%} of the grid's best" if point in truth else "not in the grid"
        counted = f"{len(found['trials'])} trials in {took:.0f} s, {took / whole:.1%} of the grid's {whole:.0f} s"
        print(f"search {seed}: {best or 'as it is'}: {reached}; {counted}", flush=True)


def fixed(one: dict[str, Any]) -> float:
    """Seconds of a trial that measure nothing: start, plan, stop."""
    return float(one["seconds"] - sum(one["took"]))


def searched(settings: tuple[Setting, ...], table: dict[Point, dict[str, Any]], seed: int, times: int) -> list[Trial]:
    """times: recorded repeats that make one of the search; its first trial finds that out."""
    dice, trials, serving = Random(seed), list[Trial](), None
    own = (0,) * len(settings)
    first = (own, *halving.design(settings, seed, lambda point: point in table))
    while then := halving.upcoming(settings, first, trials, lambda point: point in table):
        rung, point = then
        one = table[point]
        many = times if trials else 1
        drawn = [[dice.randrange(len(one["scores"])) for _ in range(many)] for _ in range(2**rung)]
        scores = [fmean(one["scores"][n] for n in group) for group in drawn]
        took = sum(one["took"][n] for group in drawn for n in group) + (0.0 if serving == point else fixed(one))
        trials.append(Trial(point, rung, Tried.MEASURED, tuple(scores), seconds=took))
        serving = point
    return trials


def made_up() -> None:
    """Terms of settings with a standard deviation of 0.3, of neighbouring pairs as given; repeats differ by 3 %."""
    for levels in ((3, 4, 5), (4, 4, 5), (3, 3, 5, 6), (5, 6, 4, 5)):
        for inter in (0.0, 0.05, 0.1):
            rows = [_made_up(levels, inter, seed) for seed in range(100)]
            good, starts = sum(one[0] >= 0.95 for one in rows), median(one[1] for one in rows)
            print(f"{prod(levels)} settings, pairs {inter:g}: 95 % reached in {good} of {len(rows)} seeds, ", end="")
            print(f"median {median(one[0] for one in rows):.1%}; {starts:.0%} of the starts, ", end="")
            print(f"{median(one[2] for one in rows):.0%} of the measuring")


def _made_up(levels: tuple[int, ...], inter: float, seed: int) -> tuple[float, float, float]:
    """(share of the best, share of the grid's starts, share of its measuring)."""
    dice = Random(seed)
    terms = [[0.0, *(dice.gauss(0, 0.3) for _ in range(count - 1))] for count in levels]
    pairs = [[[dice.gauss(0, inter) for _ in range(b)] for _ in range(a)] for a, b in pairwise(levels)]

    def speed(point: Point) -> float:
        alone = sum(terms[n][value] for n, value in enumerate(point))
        return exp(alone + sum(pairs[n][a][b] for n, (a, b) in enumerate(pairwise(point))))

    settings = tuple(Setting(f"s{n}", f"flags.s{n}", tuple(range(count))) for n, count in enumerate(levels))
    first, trials = ((0,) * len(levels), *halving.design(settings, seed, lambda _: True)), list[Trial]()
    while then := halving.upcoming(settings, first, trials, lambda _: True):
        scores = tuple(speed(then[1]) * exp(dice.gauss(0, 0.03)) for _ in range(2 ** then[0]))
        trials.append(Trial(then[1], then[0], Tried.MEASURED, scores))
    points = list(halving.points(settings, 0))
    chosen, whole = halving.best(trials), len(points) * 2 ** (halving.RUNGS - 1)
    assert chosen is not None
    measured = sum(len(one.scores) for one in trials)
    return speed(chosen) / max(map(speed, points)), len(trials) / len(points), measured / whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "replay", "search", "measure", "made-up"))
    parser.add_argument("file", nargs="?", type=Path, default=Path("grid.json"))
    parser.add_argument("--folder", type=Path, default=Path("/tmp/sparkwright-bench-tune"))
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--cluster", type=Path)
    parser.add_argument("--for", dest="goal", default="throughput")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--searches", type=int, default=2)
    parser.add_argument("--force", default="a bench of tune", help="reason, as for `up`")
    given = parser.parse_args()
    if given.what == "replay":
        replay(given.file)
        return
    if given.what == "made-up":
        made_up()
        return
    environ = prepared(given.folder)
    if given.recipe is None:
        given.recipe, given.only, given.set = given.folder / "small.yaml", list(NAMES), list(VALUES)
    environ["SPARKWRIGHT_CLUSTER"] = str(given.cluster or environ["SPARKWRIGHT_CLUSTER"])
    if given.what in ("record", "measure"):
        os.environ.update(environ)
        asyncio.run(record(given))
    if given.what in ("search", "measure"):
        search(given, environ)
    if given.what == "measure":
        replay(given.file)


if __name__ == "__main__":
    main()
