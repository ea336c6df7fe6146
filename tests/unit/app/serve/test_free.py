"""MemFree before a launch: when page cache is evicted, what is tried after that, and what is reported."""

import json
from dataclasses import replace
from typing import Any

from sparkwright.app.serve.free import free_memory, needed_free
from sparkwright.app.services import ClusterState
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Gpu, NodeFacts
from sparkwright.domain.ledger import LOADING, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.plan import Placement, Plan
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Loading, Recipe
from sparkwright.domain.units import GIB
from unit.app.scene import ClusterScene, make_scene, recipe

OWN = "/home/ai/hub/models--a--b/snapshots/1"
FRAGMENTS = "Node 0, zone   Normal 20971520 2 2 0 0 0 0 0 0 0 0 0 3"
WHOLE = "Node 0, zone   Normal 1 2 2 0 0 0 0 0 0 0 0 0 6000"


def ledger_line(name: str, size: float) -> LedgerLine:
    return LedgerLine(name, int(size * GIB), Origin.COMPUTED)


def ledger(node: str = "spark-1") -> MemoryLedger:
    lines = (ledger_line("in use now", 10), ledger_line("weights", 70), ledger_line("KV pool", 20))
    return MemoryLedger(node, ledger_line("pool", 120), lines, int(98 * GIB), loading=ledger_line(LOADING, 78))


def plan(found: Recipe) -> Plan:
    placement = Placement(("spark-1",), {})
    return Plan("a", found, make_scene(1).services.cluster, placement, (), (ledger(),), (), "", 8000, "a")


def meminfo(free: float, blocks: str = WHOLE) -> str:
    rows = {"MemTotal": 120, "MemFree": free, "MemAvailable": 100, "Buffers": 0, "Cached": 100 - free, "AnonPages": 1}
    return "".join(f"{name}: {int(size * GIB / 1024)} kB\n" for name, size in rows.items()) + blocks


def is_memory(command: Command) -> bool:
    return "/proc/buddyinfo" in command.argv[2]


def is_evict(command: Command) -> bool:
    return "evict" in command.argv


def scene_with_memory(*memories: str, evicted: float = 60, **more: Any) -> ClusterScene:
    here = make_scene(1)
    node = here.nodes[0].on(is_memory, *memories)
    found = {"files": 3, "cached": int(evicted * GIB), "left": 0, "free": 0, "unread": 0} | more
    node.on(is_evict, json.dumps(found)).on(lambda command: "drop the page cache" in command.changes, Completed(0, ""))
    return here


async def free_notices(here: ClusterScene, gpus: tuple[Gpu, ...] = (), **loading: bool) -> list[Notice]:
    facts = NodeFacts("spark-1", 0.0, gpus=gpus)
    state = ClusterState({"spark-1": facts}, {"spark-1": Checkpoint(OWN, "", "1", 0, 1)})
    made = replace(recipe("qwen3-235b-a22b-gptq-int4"), loading=Loading(**loading))
    await free_memory(here.services, plan(made), state)
    return here.sink.of(Notice)


def test_what_must_be_free_follows_from_the_plan_and_the_engine() -> None:
    """An engine that claims a share wants that, one whose pool is a share of MemFree wants all there is."""
    assert needed_free(ledger(), plan(recipe("qwen3-235b-a22b-gptq-int4"))) == 98 * GIB
    assert needed_free(ledger(), plan(recipe("deepseek-v4-flash-sglang"))) == 110 * GIB


async def test_nothing_is_evicted_where_enough_is_free() -> None:
    """Pages that nobody needs gone spare the load a read from disk."""
    here = scene_with_memory(meminfo(99))
    assert await free_notices(here) == [] and not here.nodes[0].ran(is_evict)


async def test_a_gpu_with_its_own_memory_needs_none_of_the_machines() -> None:
    """Its load takes nothing of MemFree, so there is nothing to evict and nothing to warn of."""
    here = scene_with_memory(meminfo(38))
    assert await free_notices(here, (Gpu("NVIDIA H200", "580", "9.0", 141 * GIB),)) == []
    assert not here.nodes[0].ran(is_evict) and not here.nodes[0].ran(is_memory)


async def test_the_effect_of_an_eviction_is_shown() -> None:
    """The owner sees how much was evicted, what is free now, and that the model's own files went last."""
    here = scene_with_memory(meminfo(38), meminfo(98))
    (notice,) = await free_notices(here)
    assert notice.text.startswith("spark-1: MemFree 38.0 GiB, the load takes 98.0 GiB: 60.0 GiB of page cache")
    assert notice.text.endswith("MemFree 98.0 GiB") and not notice.warning
    (command,) = here.nodes[0].ran(is_evict)
    assert command.argv[-5:] == ("evict", str(98 * GIB), OWN, "/home/ai/hub", "/home/ai/models")


async def test_all_caches_are_dropped_only_where_the_recipe_allows_it() -> None:
    """It needs root and takes other programs' pages, too."""
    for allowed in (False, True):
        here = scene_with_memory(meminfo(38), meminfo(50), meminfo(98))
        (notice,) = await free_notices(here, drop_caches=allowed)
        assert here.nodes[0].changes == (["drop the page cache and compact free memory"] if allowed else [])
        assert ("MemFree 98.0 GiB" in notice.text, notice.warning) == (allowed, not allowed)


async def test_fragments_get_the_verdict_reboot() -> None:
    """Memory that is free in small blocks only stays so: the driver fails in it, and no eviction helps."""
    here = scene_with_memory(meminfo(38), meminfo(98, FRAGMENTS))
    told = await free_notices(here, drop_caches=True)
    assert [notice.warning for notice in told] == [False, True]
    assert "fragmented" in told[1].text and "only a reboot" in told[1].text


async def test_an_eviction_that_is_not_possible_is_reported() -> None:
    """A failed eviction is no reason to refuse a start, and no reason to claim an effect."""
    here = scene_with_memory(meminfo(38))
    here.nodes[0].on(is_evict, Completed(127, "", "sh: python3: not found"))
    (notice,) = await free_notices(here)
    assert "not evicted (no python3 there)" in notice.text and notice.warning
    (notice,) = await free_notices(scene_with_memory(meminfo(38), unread=12))
    assert "12 files belong to another user" in notice.text
