"""The ranks that are present."""

import asyncio
from dataclasses import replace

import pytest

from fakes.rank_node import Exit
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.recipe import Runtime
from sparkwright.remote import docker
from sparkwright.supervisor import nodes
from sparkwright.supervisor.nodes import census
from unit.supervisor.watchtower import make_tower


async def test_what_runs_has_ended_and_cannot_be_seen() -> None:
    """Guards the difference between a rank that has ended and one whose node does not answer."""
    it = make_tower()
    it.scene.nodes[0].ranks.popitem()[1].end(Exit(1))
    it.scene.nodes[1].on("", Unreachable("spark-2", "no route to host"))
    found = await census(it.context)
    assert dict(found.ranks) == {}
    assert found.unseen == {"spark-2": "spark-2: no route to host"}
    assert found.boots == (("spark-1", "boot:1"),)


async def test_a_daemon_that_does_not_answer_may_have_containers() -> None:
    """Guards a Docker restart: its ranks are unseen, not ended."""
    it = make_tower()
    it.scene.nodes[1].on(docker.LABEL, "blind\n")
    assert "spark-2" in (await census(it.context)).unseen


@pytest.mark.parametrize("runtime", [Runtime.DOCKER, Runtime.PROCESS])
async def test_a_node_without_its_docker_has_no_containers_to_show(runtime: Runtime) -> None:
    """Guards a Docker that was stopped, whose socket is gone with it: nobody has removed a rank there. Ranks that are
    processes need none."""
    it = make_tower()
    engine = replace(it.context.desired.recipe.engine, runtime=runtime)
    it.context.desired = replace(it.context.desired, recipe=replace(it.context.desired.recipe, engine=engine))
    it.scene.nodes[1].on(docker.LABEL, "absent\nstopped\n")
    found = await census(it.context)
    assert found.dockerless == ({"spark-2": "Docker is not running on spark-2"} if runtime is Runtime.DOCKER else {})
    nodes.note_census(it.bus, found)
    assert nodes.waited_for(it.bus) == list(found.dockerless)
    it.bus.lasting.clear()


async def test_a_rank_on_a_node_where_it_does_not_belong_is_a_stray() -> None:
    """Guards a deployment that was moved by hand: it is stopped, too, and counts as no rank of ours."""
    it = make_tower()
    it.scene.nodes[1].ranks.clear()
    it.runs(1, node=0)
    found = await census(it.context)
    assert list(found.ranks) == [0]
    assert [(rank.rank, rank.node) for rank in found.strays] == [(1, "spark-1")]


async def test_a_node_that_gives_no_answer_is_unseen_and_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the hint of a refused restart: without one a person has nothing to type."""
    monkeypatch.setattr(nodes, "_LIMIT", 0.01)
    it = make_tower()
    it.scene.nodes[1].on(lambda command: True, lambda command: asyncio.sleep(60))  # type: ignore[arg-type, return-value]
    why = (await census(it.context)).unseen["spark-2"]
    assert "no answer within" in why and "ssh spark-2 true" in nodes.cure_of(why)
