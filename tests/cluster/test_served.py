"""What a deployment shows while it serves: one is started for each runtime, and these tests only look at it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from cluster.drive import LABELS, NAME, RUNTIMES, Drive, containers, lift_memlock, running
from cluster.test_up_secrets import asks
from testbed import Node, Testbed


@dataclass(frozen=True, slots=True)
class Served:
    """recipe: its file. plan: as `up` printed it."""

    drive: Drive
    recipe: str
    plan: dict[str, Any]


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def served(runtime: str, testbed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    testbed.reset()
    for node in testbed.nodes:
        lift_memlock(node)
    drive = Drive(tmp_path_factory.mktemp("served"), testbed)
    recipe = drive.recipe(runtime, **({"shm": "96m"} if runtime == "docker" else {}))
    told = drive.good("up", recipe, "--json").json
    yield Served(drive, recipe, told["plan"])
    drive.close()


@pytest.fixture(autouse=True)
def fresh_nodes() -> None:
    """Keep what is served: no test here changes it."""


def test_a_second_up_does_nothing(served: Served, nodes: list[Node]) -> None:
    """The same ranks go on, no lease is needed, and the answer is there at once."""
    before = running(nodes)
    again = served.drive.good("up", served.recipe)
    assert "already serving" in again.out
    assert running(nodes) == before
    notes = "".join(n.sh("cat /home/spark/.local/state/sparkwright/audit.log") for n in nodes)
    assert notes.count("take lease") == 2


@pytest.mark.parametrize("runtime", ["docker"], indirect=True)
def test_containers_are_what_an_engine_on_a_gb10_needs(served: Served, nodes: list[Node]) -> None:
    """Host network and IPC, an init, no restart, lifted limits, shared memory, kept logs, and labels."""
    for rank, node in enumerate(nodes):
        (found,) = containers(node)
        host: dict[str, Any] = found["HostConfig"]
        assert (host["NetworkMode"], host["IpcMode"], host["Init"]) == ("host", "host", True)
        assert host["RestartPolicy"]["Name"] == "no" and host["AutoRemove"] is False
        limits = {u["Name"]: u["Hard"] for u in host["Ulimits"]}
        assert limits == {"memlock": -1, "stack": 67108864}
        assert host["ShmSize"] == 96 << 20
        labels = found["Config"]["Labels"]
        assert {key: labels[f"sparkwright.{key}"] for key in LABELS} == {
            "deployment": NAME,
            "rank": str(rank),
            "recipe-hash": served.plan["recipe_hash"],
        }
        assert found["Name"] == f"/sparkwright-{NAME}-rank{rank}"
        assert "sparkwright.simulator" in " ".join([*found["Config"]["Entrypoint"], *found["Args"]])


def test_without_a_word_only_loopback_listens(served: Served, nodes: list[Node]) -> None:
    """Nobody reaches the endpoint from another machine unless the recipe reports it."""
    assert asks(nodes[0], "http://127.0.0.1:8000") == "200"
    for address in (nodes[0].mgmt, nodes[0].fabric):
        assert asks(nodes[1], f"http://{address}:8000") == "000"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://{nodes[0].mgmt}:8000/v1/models", timeout=3)


def test_another_name_touches_nothing(served: Served, nodes: list[Node]) -> None:
    """A typing error takes nobody's endpoint away: the names and ranks that exist are reported."""
    before = running(nodes)
    absent = served.drive.run("down", "dril")
    assert absent.code == 2 and "no deployment dril" in absent.err and NAME in absent.err, str(absent)
    rank = served.drive.run("logs", NAME, "--rank", "7")
    assert rank.code == 2 and f"{NAME} has no rank 7" in rank.err and "0, 1" in rank.err, str(rank)
    assert running(nodes) == before
