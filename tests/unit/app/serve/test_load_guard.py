"""A start whose nodes are sampled: floors by the plan, the reason of a stop, the curve, the setting to lower."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.rank_node import given_to
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.load_guard import STOPPED, LoadGuard, figures_of, load_floors, setting_to_lower
from sparkwright.app.serve.prepare import prepare
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.deployment import Phase
from sparkwright.domain.errors import NotReady
from sparkwright.domain.ledger import LOADING, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Loading
from sparkwright.domain.sample import LoadSample
from sparkwright.domain.units import GIB
from sparkwright.remote.programs import Floors
from unit.app.scene import HEAD, JOINS, LOADS, ClusterScene, make_scene, recipe, request

STOP = '{"stop": "memory"}'


def sample_line(at: float, free: float, available: float, **more: Any) -> str:
    figures = {"at": at, "free": int(free * GIB), "available": int(available * GIB), "stall": 3.0, "late": 0.0}
    return json.dumps(figures | {"large": -1, "swapped": 0} | more)


def is_guard(command: Command) -> bool:
    return "\nSPARKWRIGHT_ASKED=" in command.argv[2]


def a_start(*lines: str) -> ClusterScene:
    """Ranks that never become ready on their own, and a second node whose guard prints these lines."""
    here = make_scene()
    for node in here.nodes:
        node.script = (JOINS, LOADS)
    here.nodes[1].on(is_guard, list(lines))
    return here


def ledger(left: float, loading: float = 0.0) -> MemoryLedger:
    def sized(name: str, size: float) -> LedgerLine:
        return LedgerLine(name, int(size * GIB), Origin.COMPUTED)

    peak = sized(LOADING, loading) if loading else None
    return MemoryLedger("spark-1", sized("pool", 120), (sized("weights", 120 - left),), loading=peak)


async def test_a_guard_that_hung_is_named() -> None:
    """Guards the person who loads: for half a minute nobody looked at that node's memory."""
    here = a_start('{"hung": 30.0}')
    plan = (await prepare(here.services, request())).plan
    with pytest.raises(StopAsyncIteration):
        await LoadGuard(here.services, plan).follow("spark-2")
        raise StopAsyncIteration
    told = [one.text for one in here.sink.happenings if isinstance(one, Notice)]
    assert "the memory guard of spark-2 gave no sign of life for 30 s: it was ended and begun again" in told


@pytest.mark.parametrize(
    ("left", "loading", "soft", "hard"),
    [(40, 0, 8.0, 2.4), (6, 0, 6.0, 1.5), (1.6, 0, 1.6, 0.4), (20, 118, 2.0, 0.5), (-3, 0, 2.4, 0.0)],
)
def test_floors_are_relative_to_what_the_plan_leaves(left: float, loading: float, soft: float, hard: float) -> None:
    """Healthy configurations live at 1.6 GiB: an absolute floor would kill them; without room nothing is stopped."""
    found = load_floors(ledger(left, loading))
    assert (round(found.soft / GIB, 1), round(found.hard / GIB, 1)) == (soft, hard)
    assert load_floors(None) == Floors(GIB, 0)


async def test_a_stop_ends_the_start_with_reason_curve_and_setting() -> None:
    """The user sees which node ran short, how fast, and what to lower; all ranks are stopped, samples are kept."""
    here = a_start(sample_line(100.0, 5.0, 9.0), sample_line(101.0, 2.0, 4.0), sample_line(102.0, 0.4, 0.9), STOP)
    with pytest.raises(NotReady) as caught:
        await up(here.services, request(recipe=recipe(memory_fraction=0.85)), Options())
    error = caught.value
    assert error.message.startswith("stopped while loading: spark-2 has 0.9 GiB available, the floor is")
    assert error.hint == "lower serving.memory_fraction (0.85), for example to 0.82"
    assert error.tail[0] == "spark-2 -2 s: MemFree 5.0 GiB, MemAvailable 9.0 GiB, waited for memory 3 %"
    assert [node.running for node in here.nodes] == [[], []]
    assert "memory-spark-2.jsonl" in str(here.artifacts.saved)


@pytest.mark.parametrize(("guard", "left"), [(True, [1, 1]), (False, [0, 0])])
async def test_a_detached_start_leaves_a_guard_on_each_node(guard: bool, left: list[int]) -> None:
    """Nobody follows it: the node itself has floors, what stops its rank, and what ends with its rank."""
    here, given = make_scene(), recipe()
    given = replace(given, loading=Loading(guard), model=replace(given.model, simulated=False, id="org/name"))
    for node in here.nodes:
        node.on(lambda command: command.changes.startswith("guard"), Completed(0, ""))
    services = here.services
    plan = replace((await prepare(services, request())).plan, recipe=given, ledgers=())
    await LoadGuard(services, plan, figures_of("spark-1", Floors(9 * GIB, GIB))).leave()
    found = [[c for c in node.commands if c.changes.startswith("guard")] for node in here.nodes]
    assert [len(one) for one in found] == left
    for (command,) in filter(None, found[:1]):
        asked = json.loads(given_to(command, "SPARKWRIGHT_ASKED"))
        assert (asked["soft"], asked["hard"]) == (9 * GIB, GIB) and asked["log"].endswith("rank0/" + STOPPED)
        assert "deployments/twin/rank0" in " ".join(asked["stop"]) and "/rank0" in " ".join(asked["until"])


async def test_a_stall_is_named_as_one() -> None:
    """A node that has memory and waits for it all the time would freeze as well."""
    here = a_start(sample_line(100.0, 2.0, 4.0, stall=81.0), '{"stop": "stall"}')
    with pytest.raises(NotReady, match="all tasks of spark-2 waited for memory in 81 % of the last 10 s"):
        await up(here.services, request(), Options())


async def test_an_eviction_is_reported_once() -> None:
    """Each second would fill the screen."""
    here = a_start(*(sample_line(float(n), 2.0, 40.0, freed=4 * GIB) for n in range(5)))
    for node, script in zip(here.nodes, (HEAD, (JOINS, LOADS)), strict=True):
        node.script = script
    await up(here.services, request(), Options())
    (notice,) = [one for one in here.sink.of(Notice) if "evicted" in one.text]
    assert notice.text == "spark-2: MemFree 2.0 GiB while loading: 4.0 GiB of page cache evicted"


async def test_the_guard_can_be_switched_off() -> None:
    """The recipe has the last word."""
    here = a_start(sample_line(100.0, 0.1, 0.1), STOP)
    here.nodes[0].script = HEAD
    await up(here.services, request(recipe=replace(recipe(), loading=Loading(guard=False))), Options())
    assert not here.nodes[1].ran(is_guard)


def test_the_setting_to_lower_is_the_one_that_counts() -> None:
    """A pinned KV size skips the engine's own profiling: then no memory fraction helps."""
    assert setting_to_lower(recipe(kv_cache_bytes=8 * GIB)).startswith("lower serving.kv_cache_bytes (8.0 GiB)")
    assert "serving.batched_tokens" in setting_to_lower(recipe(memory_fraction=0.0))


async def test_what_a_load_took_is_counted_between_two_phases() -> None:
    """The next plan learns what the loader took besides weights; a node that was not sampled stays unknown."""
    here = make_scene()
    guard = LoadGuard(here.services, (await prepare(here.services, request())).plan)
    for phase, available in ((Phase.RENDEZVOUS, 100), (Phase.LOAD, 90), (Phase.COMPILE, 20), (Phase.SERVER, 5)):
        guard.curves["spark-1"].append(LoadSample(available=available * GIB))
        guard.mark(phase)
    assert guard.fell("spark-1") == 70 * GIB and guard.fell("spark-2") is None


async def test_a_start_that_another_process_planned_has_the_floors_of_that_plan() -> None:
    """The supervisor watches the load after `up --detach`, and has no ledger of its own."""
    here = a_start(sample_line(100.0, 5.0, 9.0), sample_line(101.0, 0.4, 0.9), STOP)
    made = (await prepare(here.services, request())).plan
    real = replace(made.recipe, model=replace(made.recipe.model, simulated=False))
    plan = replace(made, recipe=real, ledgers=())
    known = figures_of("spark-2", Floors(6 * GIB, 2 * GIB))
    with pytest.raises(NotReady) as caught:
        await LoadGuard(here.services, plan, known).follow("spark-2")
    assert "spark-2 has 0.9 GiB available, the floor is 2.0 GiB" in caught.value.message
