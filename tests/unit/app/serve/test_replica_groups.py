"""The nodes, addresses and key of each replica, without any node."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.app.plan.planning import bind_address
from sparkwright.app.serve.replica_groups import (
    ENGINE_KEY,
    Member,
    Present,
    ReplicaStart,
    Survey,
    check_names,
    choose_groups,
    group_cluster,
    number_asked,
    starts_of,
)
from sparkwright.app.services import Services
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import Refused, Unreachable, UsageError
from sparkwright.domain.facts import Address, Interface, NodeFacts
from sparkwright.domain.recipe import Expose
from sparkwright.engines.catalog import ENGINES
from unit.app.scene import cluster, make_scene, recipe, request

ONE = recipe("twin", "one-node")
BYTES = bytes(range(24))


class OneKeyRing:
    """A keyring that makes one key."""

    def fresh(self) -> bytes:
        return BYTES


def services(count: int = 2, made: Cluster | None = None) -> Services:
    return replace(make_scene(count).services, keyring=OneKeyRing(), cluster=made or cluster(count))  # type: ignore[arg-type]


def facts(name: str, address: str) -> NodeFacts:
    links = (
        Interface("lo", True, 65536, (Address("127.0.0.1", 8),)),
        Interface("enp1", True, 9000, (Address(address, 24),)),
    )
    return NodeFacts(name, 0.0, interfaces=links, rdma=())


def survey_of(*addresses: str) -> Survey:
    return Survey({f"spark-{n}": facts(f"spark-{n}", address) for n, address in enumerate(addresses, 1)})


async def starts(
    there: Services, found: Survey, present: Present | None = None, **more: Any
) -> tuple[ReplicaStart, ...]:
    asked, here = request(**{"recipe": ONE, **more}), present or Present()
    return await starts_of(there, asked, choose_groups(there, asked.recipe, 2, here, found), here, found)


async def test_each_replica_has_its_node_and_the_head_keeps_the_supervisor() -> None:
    first, second = await starts(services(), survey_of("10.0.0.1", "10.0.0.2"))
    assert [one.request.deployment for one in (first, second)] == ["twin-r1", "twin-r2"]
    assert [one.services.cluster.head for one in (first, second)] == ["spark-1", "spark-2"]
    assert [one.services.cluster.supervisor_node for one in (first, second)] == ["spark-1", "spark-1"]
    assert [bind_address(one.request, None) for one in (first, second)] == ["127.0.0.1", "10.0.0.2"]
    places = [one.request.replica for one in (first, second)]
    assert all(place and (place.of, place.gateway) == ("twin", "10.0.0.1") for place in places)


async def test_the_engines_get_one_key_that_supervisors_keep() -> None:
    """A second `up`, from another machine too, finds the key of the first."""
    for one in await starts(services(), survey_of("10.0.0.1", "10.0.0.2")):
        assert one.request.recipe.serving.api_key_env == ENGINE_KEY
        assert one.services.secrets[ENGINE_KEY].reveal() == BYTES.hex() == one.request.api_key.reveal()  # type: ignore[union-attr]
    made = make_scene()
    made.nodes[0].on("secrets.json", f'{{"{ENGINE_KEY}": "kept"}}')
    there, member = replace(made.services, keyring=OneKeyRing()), Member("twin-r1", 1, ("spark-1",))  # type: ignore[arg-type]
    again = await starts(there, survey_of("10.0.0.1", "10.0.0.2"), Present((member,)))
    assert {one.request.api_key.reveal() for one in again if one.request.api_key} == {"kept"}
    assert [one.fresh for one in again] == [False, True]


async def test_an_engine_without_keys_is_not_opened_to_a_network() -> None:
    bare = replace(
        ONE, engine=replace(ONE.engine, name="trtllm", version=""), model=replace(ONE.model, simulated=False)
    )
    assert "trtllm" in ENGINES
    with pytest.raises(Refused, match="trtllm takes no key"):
        await starts(services(), survey_of("10.0.0.1", "10.0.0.2"), recipe=bare)
    fabric = replace(bare, serving=replace(bare.serving, expose=Expose.FABRIC))
    (_, second) = await starts(services(), survey_of("10.0.0.1", "10.0.0.2"), recipe=fabric)
    assert second.request.api_key is None and bind_address(second.request, None) == "10.0.0.2"


async def test_a_node_without_a_way_to_the_gateway_is_named() -> None:
    with pytest.raises(UsageError, match="no way to spark-2: the two have no IPv4 subnet in common"):
        await starts(services(), survey_of("10.0.0.1", "10.9.0.2"))


async def test_nodes_that_are_one_machine_share_its_ports() -> None:
    here = cluster()
    local = replace(here, nodes=tuple(replace(node, ssh="local") for node in here.nodes))
    first, second = await starts(services(made=local), survey_of("10.0.0.1", "10.0.0.2"))
    ports = [one.request.recipe.serving.port for one in (first, second)]
    assert ports == [8000, 8001] and first.request.api_key is None
    assert [bind_address(one.request, None) for one in (first, second)] == ["127.0.0.1"] * 2


def test_an_unreachable_node_is_no_candidate() -> None:
    found = Survey({"spark-1": facts("spark-1", "10.0.0.1"), "spark-2": Unreachable("spark-2", "no route to host")})
    with pytest.raises(Refused, match=r"1 can be used; not usable: spark-2 \(no route to host\); nothing was changed"):
        choose_groups(services(), ONE, 2, Present(), found)


def test_the_group_comes_first_and_every_node_stays_known() -> None:
    """Weights are copied from nodes of other groups."""
    made = group_cluster(cluster(3), ("spark-2", "spark-3"))
    assert [node.name for node in made.ordered] == ["spark-2", "spark-3", "spark-1"]
    assert (made.head, made.supervised_on) == ("spark-2", "spark-1")
    assert group_cluster(cluster(3), ("spark-1", "spark-3")).supervised_on == ""


@pytest.mark.parametrize(("asked", "own", "there", "count"), [(3, 2, 1, 3), (0, 2, 3, 2), (0, 1, 3, 3), (0, 1, 0, 1)])
def test_the_option_wins_then_the_recipe_then_what_is_there(asked: int, own: int, there: int, count: int) -> None:
    made = replace(ONE, serving=replace(ONE.serving, replicas=own))
    assert number_asked(asked, made, range(there)) == count


def test_a_name_that_is_too_long() -> None:
    check_names("a" * 60, 9)
    with pytest.raises(UsageError, match="at most 63"):
        check_names("a" * 60, 10)
