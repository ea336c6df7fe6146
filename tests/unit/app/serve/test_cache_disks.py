"""The disk of the engine's KV cache at a start: one that is away stops nothing."""

from dataclasses import replace

import pytest

from sparkwright.app.serve.launch import Options, up
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.remote.disk_cache import IS_AWAY
from unit.app.scene import ClusterScene, make_scene, recipe, request

GONE = Completed(IS_AWAY, "mkdir: cannot create directory '/data/kv/twin': Permission denied\n")


def cached_recipe() -> Recipe:
    made = recipe(disk_cache="/data/kv", disk_cache_size=200 * GIB, host_cache=8 * GIB)
    return replace(made, engine=replace(made.engine, name="vllm", version="0.33.0"))


def is_preparing(command: Command) -> bool:
    return command.changes.startswith("keep /data/kv/")


def started_words(here: ClusterScene) -> list[str]:
    """The command line of each start, workers first."""
    asked = [command for node in here.nodes for command in node.commands]
    return [" ".join(command.argv) for command in asked if command.changes.startswith("start ")]


@pytest.mark.parametrize("away", [GONE, Unreachable("spark-2", "no answer")], ids=["gone", "silent"])
async def test_ranks_start_without_a_tier_whose_disk_is_away(away: Completed | Exception) -> None:
    """Guards a relaunch after a lost disk: it serves, on all nodes without the tier, and as the same deployment."""
    here = make_scene()
    here.nodes[1].on(is_preparing, away)
    outcome = await up(here.services, request(recipe=cached_recipe()), Options())
    assert outcome.done == "ready"
    assert outcome.without.startswith("spark-2")
    assert all("/data/kv" not in words for words in started_words(here)) and len(started_words(here)) == 2
    (said,) = [one.text for one in here.sink.of(Notice) if "without its KV" in one.text]
    assert "spark-2" in said
    here.nodes[1].on(is_preparing, Completed(0, ""))
    again = await up(here.services, request(recipe=cached_recipe()), Options())
    assert again.done == "already serving"


async def test_ranks_have_the_tier_whose_disks_are_there() -> None:
    """Guards the option itself: each rank is given the folder, which was made before on its node."""
    here = make_scene()
    outcome = await up(here.services, request(recipe=cached_recipe()), Options())
    assert outcome.done == "ready" and outcome.without == ""
    assert all("/data/kv/twin-" in words for words in started_words(here)) and len(started_words(here)) == 2
