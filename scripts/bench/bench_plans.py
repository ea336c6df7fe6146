"""The time of a plan and of a search once facts and model facts are known: sparkwright's own work, without any node."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, cast

from bench_measures import BenchFigure, python_alone, seconds
from bench_nodes import ROOT

from sparkwright.app.plan.gate import judge_of, surroundings, unreal
from sparkwright.app.plan.planning import make_plan
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.cluster import Cluster, Fabric, Node
from sparkwright.domain.facts import Gpu, Identity, Memory, NodeFacts, Unknown
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Goal
from sparkwright.planner.optimize import optimize
from sparkwright.recipes.load import load_recipe

TOTAL, NODES = int(121.6 * GIB), 4
IDLE, BUSY = 6 * GIB, 50 * GIB  # in use on each node
PLAN, SEARCH = 50, 2000  # milliseconds, the targets
MORE = 3  # times --repeats: one takes a fraction of a second

Work = Callable[[], Callable[[], object]]
"""Makes again what is then timed: nothing that an earlier call has saved is of use to it."""


def plans_take(repeats: int) -> list[BenchFigure]:
    """A plan that fits, one that is refused with a search for remedies, and `--optimize`, of all shipped recipes."""
    recipes = shipped()
    fits = [one for one in recipes if fitting(one, IDLE)]
    refused = [one for one in recipes if not fitting(one, BUSY)]
    return [
        _slowest("plan that fits", [partial(_plan, one, IDLE) for one in fits], PLAN, repeats),
        _slowest("plan that is refused", [partial(_plan, one, BUSY) for one in refused], PLAN, repeats),
        _slowest("--optimize", [partial(_search, one, goal) for one, goal in product(fits, Goal)], SEARCH, repeats),
    ]


def shipped() -> list[Recipe]:
    """Every variant of every recipe of a real engine that has as many nodes here as it wants."""
    found = []
    for path in sorted((ROOT / "src/sparkwright/recipes/shipped").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        base = load_recipe(text, path.name)
        found += [base, *(load_recipe(text, path.name, profile) for profile in base.profiles)]
    return [one for one in found if one.nodes <= NODES and not unreal(CLUSTER, one)]


def fitting(recipe: Recipe, taken: int) -> bool:
    verdict = make_plan(SERVICES, _request(recipe), ClusterState(_facts(taken))).verdict
    return verdict is not None and verdict.fits


def _slowest(name: str, every: Sequence[Work], target: float, repeats: int) -> BenchFigure:
    """The one that takes longest when all are tried, again and again in turn with the start of Python."""
    times = [min(seconds(make()) for _ in range(2)) for make in every]
    slowest = every[times.index(max(times))]
    taken, bare = [], []
    for _ in range(MORE * repeats):
        taken.append(1000 * seconds(slowest()))
        bare.append(1000 * python_alone())
    alone = statistics.median(bare)
    base = f"{statistics.median(taken) / alone:.1f} x python alone ({alone:.1f} ms)"
    note = f"the slowest of {len(every)}; the one in the middle takes {1000 * statistics.median(times):.1f} ms"
    return BenchFigure(name, "this machine", tuple(taken), "ms", target, base, note, simulated=False)


def _plan(recipe: Recipe, taken: int) -> Callable[[], object]:
    return partial(make_plan, SERVICES, _request(_anew(recipe)), ClusterState(_facts(taken)))


def _search(recipe: Recipe, goal: Goal) -> Callable[[], object]:
    request, state = _request(_anew(recipe)), ClusterState(_facts(IDLE))
    judge = judge_of(request, state, CLUSTER.nodes[: recipe.nodes])
    return partial(optimize, request.recipe, judge, surroundings(SERVICES, request, state, judge), goal)


def _anew(recipe: Recipe) -> Recipe:
    """The recipe as if just read: cached parts of a plan hang on the recipe's own mappings."""
    return replace(recipe, flags=dict(recipe.flags), env=dict(recipe.env))


def _request(recipe: Recipe) -> LaunchRequest:
    return LaunchRequest(recipe, recipe.deployment)


def _facts(taken: int) -> dict[str, NodeFacts]:
    return {node.name: _node(node.name, taken + number * GIB // 8) for number, node in enumerate(CLUSTER.nodes)}


def _node(name: str, taken: int) -> NodeFacts:
    """A GB10 of which no two have as much free."""
    free = TOTAL - taken
    return NodeFacts(
        name,
        0.0,
        identity=Identity(name, "0" * 32, "aarch64", "boot", "user", "/home/user"),
        memory=Memory(TOTAL, free, free, 0, 0, 0, 0),
        gpus=(Gpu("NVIDIA GB10", "590.48", "12.1", Unknown("[N/A]")),),
        gpu_processes=(),
    )


CLUSTER = Cluster(
    "bench",
    tuple(Node(f"node-{n}", f"node-{n}", Fabric(f"192.168.100.{n}", "eth0", ())) for n in range(1, NODES + 1)),
    "node-1",
)


class _NeverStarted:
    """Calibrations of a machine on which nothing has run."""

    def like(self, _: object) -> tuple[()]:
        return ()


NOBODY = cast(Any, None)  # a plan of what is known asks nobody
SERVICES = Services(CLUSTER, NOBODY, NOBODY, NOBODY, NOBODY, cast(Any, _NeverStarted()), NOBODY, "bench", "0")
