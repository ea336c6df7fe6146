"""Two replicas of a model on two simulated nodes of one machine: one address, restarted in turn, scaled, taken away."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functional.command import UserShell
from functional.gateway.gateways import has_caddy
from functional.test_install_supervisor import SCALED, wait_until_ended
from functional.test_install_supervisor import user_shell as user_shell
from functional.test_several import FORCE, RepeatingClient, Served
from patience import wait_until

NAME = "alpha"
TWO = tuple(f"{NAME}-r{number}" for number in (1, 2))


@pytest.fixture
def served(user_shell: UserShell) -> Iterator[Served]:
    if not has_caddy():
        pytest.skip("caddy is not installed")
    yield Served(user_shell)
    user_shell.run("down", NAME)


def recipe(served: Served, name: str = NAME, model: str = "", **env: str) -> str:
    return f"{served.recipe(name, model, **env)}@one-node"


def shown_by_name(served: Served) -> dict[str, Any]:
    """Exit 1 is for a trouble there, such as memory pressure on a busy machine. A supervisor that has just begun says
    that it loads until it has had its first token."""
    found: dict[str, Any] = {}

    def settled() -> bool:
        code, out, err = served.shell.run("status", "--json", **SCALED)
        assert code in (0, 1), err
        found.clear()
        found.update({one["name"]: one for one in json.loads(out)["deployments"]})
        return {one["state"] for one in found.values()} <= {"ready", "degraded"}

    wait_until(settled, lambda: json.dumps(found, indent=1), poll=1)
    wrong = [one["problems"] for one in found.values()]
    assert not any("gateway" in text for texts in wrong for text in texts), wrong
    return found


def replicas(served: Served, count: int) -> Any:
    return served.good("up", recipe(served), "--replicas", str(count), *FORCE)


@pytest.mark.full
def test_two_replicas_are_one_model(served: Served) -> None:
    """Each on its own node; one answers for the model while the other restarts; `down` leaves nothing."""
    said = replicas(served, 2)
    assert [(one["plan"]["deployment"], one["done"]) for one in said["replicas"]] == [(name, "ready") for name in TWO]
    found = shown_by_name(served)
    assert {name: one["replica_of"] for name, one in found.items()} == dict.fromkeys(TWO, NAME)
    assert {one["ranks"][0]["node"] for one in found.values()} == {"a", "b"}
    (model,) = json.loads(served.shell.run("status", NAME, "--json", **SCALED)[1])["models"]
    assert (model["serving"], model["replicas"]) == (2, list(TWO))
    assert ", 2 of 2 replicas serve" in served.shell.run("status", **SCALED)[1]
    code, _, err = served.shell.run("up", recipe(served), "--name", TWO[1], **SCALED)
    assert code == 2 and f"is a replica of {NAME}" in err
    again = replicas(served, 2)
    assert [one["done"] for one in again["replicas"]] == ["already serving"] * 2
    with served.client as client:
        asking = RepeatingClient(client, NAME)
        took = served.good("restart", NAME, "--rolling")
        assert list(took["replicas"]) == list(TWO)
        assert asking.end() == {200}
    failing = recipe(served, SPARKWRIGHT_SIMULATOR_FAULT="oom@load")
    code, _, err = served.shell.run("up", failing, *FORCE, **SCALED)
    assert code == 5 and f"rolled back: {TWO[0]} serves again" in err and f"not touched: {TWO[1]}" in err, err
    assert replicas(served, 1)["removed"] == [TWO[1]] and list(shown_by_name(served)) == [TWO[0]]
    code, _, err = served.shell.run("restart", NAME, "--rolling", **SCALED)
    assert code == 5 and "no other replica" in err
    gone = served.good("down", NAME)
    assert gone["replicas"] == [TWO[0]]
    assert served.shell.run("status", NAME, **SCALED)[0] == 1
    wait_until_ended(served.shell)


def test_more_replicas_than_nodes_change_nothing(served: Served) -> None:
    """`plan` shows the group of each, and `up` refuses before it touches a node."""
    _, out, _ = served.shell.run("plan", recipe(served), "--replicas", "2", **SCALED)
    assert [line.split()[:3] for line in out.splitlines()[2:4]] == [[TWO[0], "a", "fits"], [TWO[1], "b", "fits"]], out
    code, _, err = served.shell.run("up", recipe(served), "--replicas", "3", *FORCE, **SCALED)
    assert code == 1 and "3 replicas of 1 node(s) need 3 nodes, and 2 can be used" in err
    assert not shown_by_name(served)
    code, _, err = served.shell.run("up", recipe(served), "--replicas", "2", "--no-supervise", **SCALED)
    assert code == 2 and "need the gateway" in err


@pytest.mark.full
def test_one_that_stands_alone_becomes_a_replica_and_all_are_switched(served: Served) -> None:
    """The new one starts first, so that clients see no gap; a switch replaces both."""
    served.good("up", recipe(served, NAME, "coder"), *FORCE)
    with served.client as client:
        asking = RepeatingClient(client, "coder")
        said = served.good("up", recipe(served, NAME, "coder"), "--replicas", "2", *FORCE)
        assert asking.end() == {200} and len(said["replicas"]) == 2
        assert sorted(shown_by_name(served)) == list(TWO)
        asking = RepeatingClient(client, "coder")
        served.good("switch", NAME, recipe(served, "beta", "coder"), *FORCE)
        assert asking.end() <= {200, 503}
    assert sorted(shown_by_name(served)) == ["beta-r1", "beta-r2"]
    served.good("down", "beta")
    wait_until_ended(served.shell)
