"""Calibration: the plan after an `up` knows what the engine printed; the simulator on two entries that are this
machine."""

import json
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.command import UserShell

pytestmark = pytest.mark.full

_SHIPPED = Path(__file__).parents[2] / "src/sparkwright/recipes/shipped/simulator.yaml"
RECIPE = _SHIPPED.read_text().replace("name: simulator\n", "name: twin\n", 1)


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    entry = (
        "  - {{name: {0}, ssh: local, fabric: {{address: 127.0.0.{2}, interface: lo, hcas: []}},"
        " paths: {{state: {1}/{0}/state, models: {1}/models, hub: {1}/hub, cache: {1}/cache}}}}\n"
    )
    nodes = "".join(entry.format(name, tmp_path, number) for number, name in enumerate("ab", 1))
    (tmp_path / "cluster.yaml").write_text(f"head: a\nnodes:\n{nodes}")
    ports = [free_port(), free_port()]
    text = RECIPE.replace("serving:\n", "serving:\n  port: {}\n  master_port: {}\n".format(*ports))
    (tmp_path / "twin.yaml").write_text(text)
    return UserShell(tmp_path)


def test_the_next_plan_knows_what_was_reported(user_shell: UserShell) -> None:
    """Each node's own figures, kept for this user alone and marked as simulated: no ledger counts them."""
    _, before, _ = user_shell.run("plan", "./twin.yaml", "--json")
    try:
        code, out, err = user_shell.run("up", "./twin.yaml", "--no-supervise", "--force", "no GPU here")
        assert code == 0, out + err
        _, out, _ = user_shell.run("plan", "./twin.yaml", "--json")
    finally:
        user_shell.run("down", "twin")
        user_shell.clean()
    found = json.loads(out)["measured"]
    assert json.loads(before)["measured"] == {}
    assert {node: (one["conditions"]["rank"], one["differs"]) for node, one in found.items()} == {
        "a": (0, []),
        "b": (1, []),
    }
    assert found["a"]["kv_tokens"] > 0
    assert found["a"]["weights"] == found["b"]["weights"] > 0
    assert all(line["origin"] != "calibrated" for ledger in json.loads(out)["memory"] for line in ledger["lines"])
    kept = list((user_shell.folder / ".local/state/sparkwright/calibrations").iterdir())
    assert sorted(oct(path.stat().st_mode)[-3:] for path in kept) == ["600", "600"]
    # Of a simulated model no ledger counts memory: there is no prediction to compare.
    assert json.loads(user_shell.run("plan", "--history", "--json")[1])["rows"] == []
