"""Cards that `init` offers for Wake-on-LAN, and the lines of the cluster file."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.setup.init_wake import wake_cards
from sparkwright.cli.init import InitOptions, _forget_wake, _write
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.fabric_facts import Network, Route, WakeCard
from sparkwright.domain.facts import NodeFacts
from sparkwright.recipes.cluster_file import load_cluster
from sparkwright.recipes.cluster_text import cluster_text
from sparkwright.recipes.edit_file import add_wake, remove_wake
from unit.app.scene import cluster
from unit.for_each import for_each

CARD = WakeCard("enP7s7", "48:b0:2d:00:00:01", False)
FABRIC = WakeCard("enp1s0f0np0", "48:b0:2d:00:00:09", True)
OTHER = WakeCard("enp9s0", "48:b0:2d:00:00:05", True)
RADIO = WakeCard("wlP9s9", "48:b0:2d:00:00:07", False)
DEFAULT = (Route("default", "192.168.1.1", "enP7s7"),)
FILE = """# my cluster
name: lab
head: a
nodes:
  - name: a
    ssh: ai@192.168.1.20  # the left one
  - name: b
"""
TWO = {"a": CARD.mac, "b": "10:20:30:40:50:11"}


def facts(*cards: WakeCard, routes: tuple[Route, ...] = DEFAULT) -> dict[str, NodeFacts]:
    network = Network(routes=routes, cards=cards)
    return {name: NodeFacts(name, 0.0, network=network) for name in ("spark-1", "spark-2")}


@for_each(
    "cards, routes, chosen",
    [
        ((CARD, FABRIC, OTHER), DEFAULT, CARD),  # armed or not: the one of the default route
        ((CARD, FABRIC, RADIO), (), CARD),  # the only one that is neither fabric nor radio
        ((CARD, OTHER), (), None),  # which of two is connected is not guessed
        ((FABRIC,), DEFAULT, None),
        ((replace(CARD, armed=None),), DEFAULT, None),  # its driver or firmware cannot
        ((replace(CARD, mac="00:00:00:00:00:00"),), DEFAULT, None),
        ((), DEFAULT, None),
    ],
)
def test_the_card_that_could_wake_a_node(
    cards: tuple[WakeCard, ...], routes: tuple[Route, ...], chosen: WakeCard | None
) -> None:
    """Guards the choice: able to wake, of the ordinary network, and certain."""
    found = wake_cards(cluster(), facts(*cards, routes=routes))
    assert found == ({"spark-1": chosen, "spark-2": chosen} if chosen else {})


def test_nodes_that_name_a_card_or_have_nobody_to_wake_them_are_left() -> None:
    """Guards a user's own `wake`, and a node that is alone."""
    two = cluster()
    named = replace(two, nodes=(replace(two.nodes[0], wake="48:b0:2d:00:00:33"), two.nodes[1]))
    assert list(wake_cards(named, facts(CARD))) == ["spark-2"]
    assert wake_cards(cluster(1), facts(CARD)) == {}


def test_the_lines_are_added_and_taken_back_and_nothing_else_changes() -> None:
    """Guards the user's comments, an address of digits alone (a number in YAML 1.1), and `wake` lines of their own."""
    text = add_wake(FILE, TWO)
    assert {node.name: node.wake for node in load_cluster(text, "x").nodes} == TWO
    assert "# my cluster" in text and "# the left one" in text and remove_wake(text) == FILE
    mine = FILE + '    wake: "48:b0:2d:00:00:44"\n'
    assert remove_wake(mine) == mine and remove_wake(add_wake(mine, {"a": CARD.mac})) == mine
    made = Cluster("lab", (Node("a", "a", wake=CARD.mac), Node("b", "b")), "a", "x")
    assert load_cluster(cluster_text(made), "x") == made
    assert "wake" not in remove_wake(cluster_text(made))


@given(st.sets(st.sampled_from(["a", "b", "elsewhere"])))
def test_any_choice_of_nodes_can_be_taken_back(names: set[str]) -> None:
    """Guards the way back for each set of nodes, also of names that the file does not have."""
    assert remove_wake(add_wake(FILE, dict.fromkeys(names, CARD.mac))) == FILE


def options(dry_run: bool = False) -> InitOptions:
    return InitOptions((), ClusterOptions(), "", False, False, True, dry_run, False, False, False, (), (), "")


def test_an_existing_file_gets_only_wake_and_undo_removes_it(tmp_path: Path) -> None:
    """Guards a dry run, a file of other nodes, and what `init --undo` leaves."""
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE)
    found = load_cluster(FILE, str(path))
    assert _write(found, "", options(dry_run=True), TWO) == "unchanged" and path.read_text() == FILE
    assert _write(found, "", options(), {}) == "unchanged"
    others = replace(found, nodes=found.nodes[:1])
    assert "other nodes" in _write(others, "", options(), TWO) and path.read_text() == FILE
    assert _write(found, "", options(), TWO) == "changed: `wake` of a, b added"
    assert load_cluster(path.read_text(), "x").nodes[1].wake == TWO["b"]
    _forget_wake(found, options())
    assert path.read_text() == FILE
    path.unlink()
    _forget_wake(found, options())
    assert not path.exists()
