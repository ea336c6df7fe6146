"""Nodes divided into groups for the replicas of a model."""

import pytest

from sparkwright.planner.groups import GroupNode, Wanted, group_nodes

GIB = 1024**3


def spare_node(name: str, free: int = 100, weights: bool = False, *networks: str) -> GroupNode:
    return GroupNode(name, free * GIB, weights, frozenset(networks or ("10.0.0.0/24",)))


FOUR = (spare_node("a", 50), spare_node("b", 90), spare_node("c", 100), spare_node("d", 80, True))


def test_the_gateway_s_node_then_weights_then_memory() -> None:
    found = group_nodes(FOUR, Wanted(1, 4, "a"))
    assert found.groups == {1: ("a",), 2: ("d",), 3: ("c",), 4: ("b",)}
    assert (found.left, found.refused) == ((), "")


def test_no_node_is_in_two_groups() -> None:
    found = group_nodes(FOUR, Wanted(2, 2, "a"))
    nodes = [name for group in found.groups.values() for name in group]
    assert sorted(nodes) == ["a", "b", "c", "d"] and found.groups[1] == ("a", "d")


def test_a_group_shares_a_fabric() -> None:
    """Two pairs on two switches, and one node that is left over."""
    nodes = (
        spare_node("a", 10, False, "1"),
        spare_node("b", 99, True, "2"),
        spare_node("c", 98, True, "2"),
        spare_node("d", 9, False, "1"),
    )
    found = group_nodes((*nodes, spare_node("e", 90, False, "3")), Wanted(2, 2, "a"))
    assert found.groups == {1: ("a", "d"), 2: ("b", "c")} and found.left == ("e",)
    short = group_nodes((*nodes, spare_node("e", 90, False, "3"), spare_node("f", 90, False, "4")), Wanted(2, 3, "a"))
    assert "2 could be formed" in short.refused and "e, f do not share a fabric subnet" in short.refused


def test_more_replicas_than_nodes_has_a_reason() -> None:
    found = group_nodes((*FOUR, GroupNode("e", away="no route to host")), Wanted(2, 3, "a"))
    assert found.refused.startswith("3 replicas of 2 node(s) need 6 nodes, and 4 can be used")
    assert "not usable: e (no route to host)" in found.refused


def test_replicas_that_are_there_keep_nodes_and_numbers() -> None:
    grown = group_nodes(FOUR, Wanted(1, 3, "a", {2: ("c",)}))
    assert grown.groups == {1: ("a",), 2: ("c",), 3: ("d",)}
    shrunk = group_nodes(FOUR, Wanted(1, 1, "a", {2: ("c",), 3: ("a",)}))
    assert shrunk.groups == {2: ("c",)} and shrunk.dropped == (3,)


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        ({1: ("a",), 2: ("a",)}, "a is in replica 1 and in replica 2"),
        ({1: ("a", "b")}, "replica 1 runs on 2 node(s), and the recipe wants 1"),
    ],
)
def test_what_cannot_be_kept_is_refused(kept: dict[int, tuple[str, ...]], says: str) -> None:
    assert says in group_nodes(FOUR, Wanted(1, 2, "a", kept)).refused
