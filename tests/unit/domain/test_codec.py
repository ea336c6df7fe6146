"""A value left on a node comes back as it was; otherwise the fault is named."""

import json
from importlib.resources import files

import pytest

from sparkwright.domain.cluster import Cluster, Fabric, Node
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.live import DeploymentState, Desired, Live, LiveNode, LiveRank
from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each

CLUSTER = Cluster("c", (Node("a", "local", Fabric("10.0.0.1", "eth0", ("mlx5_0",)), env=(("A", "b"),)),), "a")
SHIPPED = sorted(f.name for f in files("sparkwright.recipes").joinpath("shipped").iterdir() if f.name.endswith("yaml"))


@pytest.mark.parametrize("names", [SHIPPED[::3], pytest.param(SHIPPED, marks=pytest.mark.full)], ids=["some", "all"])
def test_a_shipped_recipe_comes_back_as_it_was(names: list[str]) -> None:
    """A supervisor launches from what was written, never from a recipe file that has changed since."""
    for name in names:
        text = files("sparkwright.recipes").joinpath("shipped", name).read_text(encoding="utf-8")
        wanted = Desired("d", CLUSTER, load_recipe(text, name), speeds={"prefill_tokens_s": 2000.0})
        assert from_json(Desired, to_json(wanted)) == wanted, name


def test_a_live_state_comes_back_as_it_was() -> None:
    """Optional figures stay None, nested tuples stay tuples."""
    node, rank = LiveNode("a", 1.5, True, available=5), LiveRank(0, "a", True)
    live = Live(1.0, "d", DeploymentState.READY, 0.5, troubles=(("leak", "x"),), ranks=(rank,), nodes=(node,))
    assert from_json(Live, to_json(live)) == live


def test_what_a_newer_version_adds_is_left_out_and_what_is_missing_has_its_default() -> None:
    """Two versions of sparkwright may meet on one node."""
    tree = {"at": 1, "deployment": "d", "phase": "ready", "since": 2, "news": [1]}
    assert from_json(Live, json.dumps(tree)) == Live(1.0, "d", DeploymentState.READY, 2.0)


@for_each(
    "text, said",
    [
        ("{", "no JSON"),
        ("[]", "Live: list, not dict"),
        ('{"at": 1}', "Live: deployment, phase, since missing"),
        ('{"at": "x", "deployment": "d", "phase": "ready", "since": 1}', "Live.at: str, not float"),
        ('{"at": 1, "deployment": "d", "phase": "dancing", "since": 1}', "'dancing' is none of"),
        ('{"at": 1, "deployment": "d", "phase": "ready", "since": 1, "troubles": [["a"]]}', "1 values, not 2"),
        ('{"at": 1, "deployment": "d", "phase": "ready", "since": 1, "incident": true}', "bool, not int"),
    ],
)
def test_a_broken_file_states_where(text: str, said: str) -> None:
    """A cut or edited file is a finding, never a guess."""
    with pytest.raises(Unreadable, match=said.replace("[", r"\[")):
        from_json(Live, text)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"at": ' + "9" * 400 + "}", '{"at": ' + "9" * 9000 + "}"])
def test_a_text_that_breaks_a_parser_is_unreadable(text: str) -> None:
    """Guards nesting without end and numbers that fit in nothing: a file is to blame, not we."""
    with pytest.raises(Unreadable):
        from_json(Live, text)


def test_half_a_character_can_be_written() -> None:
    """An engine may send half a character, and a path need not be UTF-8: neither may end a journal."""
    odd = Cluster("\ud800 a \udcff µ", (), "")
    assert from_json(Cluster, to_json(odd).encode()) == Cluster("? a ? µ", (), "")
