"""The deployments that `up` finds: replicas, one that stands alone, one that has a replica's name."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.app.serve.replica_groups import Member, find_present
from sparkwright.app.serve.replicas import restart_replicas, wants_replicas
from sparkwright.app.services import Services
from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import NotReady, Unreachable, UsageError
from sparkwright.domain.live import DeploymentState
from unit.app.scene import make_scene, recipe, request
from unit.app.test_status_supervised import LIVE

ONE = recipe("twin", "one-node")


def services_with(**found: str) -> Services:
    """name -> the model of which it is a replica, '' for one that stands alone; `_` is `-`."""
    here = make_scene()
    live = json.loads(to_json(replace(LIVE, phase=DeploymentState.READY)))
    row = {"by": "", "running": True, "unit": "", "now": 1001.0, "endpoint": ""}
    rows = [
        {**row, "deployment": name, "replica_of": of, "live": {**live, "deployment": name}}
        for name, of in ((name.replace("_", "-"), of) for name, of in found.items())
    ]
    here.nodes[0].on("python3 -I -", json.dumps(rows))
    return here.services


async def test_replicas_keep_their_numbers_and_one_that_stands_alone_gets_the_next() -> None:
    found = await find_present(services_with(twin_r1="twin", twin_r3="twin", other=""), request())
    assert [(one.name, one.number, one.serves) for one in found.members] == [("twin-r1", 1, True), ("twin-r3", 3, True)]
    found = await find_present(services_with(twin=""), request())
    assert found.replaced == {1: "twin"} and found.members[0].number == 1


async def test_replicas_of_another_model_are_replaced_number_by_number() -> None:
    found = await find_present(services_with(old_r1="old", old_r2="old", twin_r1="twin"), request(replaces="old"))
    assert found.replaced == {2: "old-r2"} and [one.name for one in found.members] == ["twin-r1", "old-r2"]
    with pytest.raises(UsageError, match="no deployment gone"):
        await find_present(services_with(twin_r1="twin"), request(replaces="gone"))


async def test_a_stranger_with_a_replica_s_name_is_left_alone() -> None:
    with pytest.raises(UsageError, match="twin-r2 stands alone"):
        await find_present(services_with(twin_r2=""), request())


async def test_replicas_have_one_recipe() -> None:
    """`up` under the name of a single replica is refused, whatever the recipe."""
    with pytest.raises(UsageError, match="twin-r2 is a replica of twin, and all of its replicas have one recipe"):
        await wants_replicas(
            services_with(twin_r1="twin", twin_r2="twin"), request(deployment="twin-r2", supervised=True), 0
        )
    assert not await wants_replicas(services_with(), request(deployment="twin-r2", supervised=True), 0)


@pytest.mark.parametrize(
    ("asked", "more", "found", "wanted"),
    [
        (0, {}, {}, False),
        (1, {}, {}, False),
        (2, {}, {}, True),
        (0, {}, {"twin_r1": "twin"}, True),
        (0, {"replaces": "old"}, {"old_r1": "old"}, True),
        (0, {"recipe": replace(ONE, serving=replace(ONE.serving, replicas=2))}, {}, True),
    ],
)
async def test_what_is_about_replicas(asked: int, more: dict[str, Any], found: dict[str, str], wanted: bool) -> None:
    assert await wants_replicas(services_with(**found), request(supervised=True, **more), asked) is wanted


async def test_replicas_need_a_gateway_and_do_not_rest() -> None:
    with pytest.raises(UsageError, match="need the gateway"):
        await wants_replicas(services_with(), request(supervised=False), 2)
    resting = replace(ONE, serving=replace(ONE.serving, on_demand=True))
    with pytest.raises(UsageError, match="exclude each other"):
        await wants_replicas(services_with(), request(supervised=True, recipe=resting), 2)


async def test_the_only_one_that_serves_is_not_restarted_in_turn() -> None:
    """It stops before the first request could be refused, and names the others."""
    members = [Member(f"twin-r{number}", number, ("spark-1",)) for number in (1, 2)]
    with pytest.raises(NotReady, match="no other replica of twin serves") as caught:
        await restart_replicas(services_with(twin_r1="twin"), "twin", members, rolling=True)
    assert caught.value.message.endswith("; not restarted: twin-r2")


async def test_a_head_that_is_away_is_named_with_all_other_nodes_that_are() -> None:
    """The caller asks all nodes unless replicas were asked for, which need the head first."""
    here = make_scene()
    here.nodes[0].on(lambda command: True, Unreachable("spark-1", "connection refused"))
    assert not await wants_replicas(here.services, request(supervised=True), 0)
    with pytest.raises(Unreachable):
        await wants_replicas(here.services, request(supervised=True), 2)
