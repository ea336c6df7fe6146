"""`up` of a changed recipe, and in another's place: what serves is not lost, and clients get a reason all along."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.clients import PollingClient, asking, no_start_timed
from cluster.drive import BRISK, NAME, QUICK, RUNTIMES, CommandDriver, assert_clean, engines, running
from patience import wait_until
from testbed import ContainerNode

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)
STATE = "/home/spark/.local/state/sparkwright"
OOM = {**QUICK, "SPARKWRIGHT_SIMULATOR_FAULT": "oom@load"}
OPEN = {"expose": "all"}
OTHER = "other"


@pytest.fixture
def driver(driver: CommandDriver) -> CommandDriver:
    driver.supervise = True
    driver.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    return driver


def home_folder(drive: CommandDriver) -> Path:
    return drive.folder / "home"


def desired(head: ContainerNode, name: str = NAME) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(head.sh(f"cat {STATE}/supervision/{name}/desired.json"))
    return found["recipe"]


def all_along(client: PollingClient, *reasons: str, resets: int = 0) -> None:
    """Only answers and 503, every 503 with its reason and a Retry-After."""
    assert client.resets <= resets
    assert client.statuses() <= {200, 503}, client.around({200, 503})
    assert 503 in client.statuses()
    assert all(code and message and int(after) > 0 for code, message, after in client.refusals)
    text = "\n".join(message for _, message, _ in client.refusals)
    assert all(reason in text for reason in reasons), text
    assert client.once()[0] == 200


def gateway_story(driver: CommandDriver, head: ContainerNode, client: PollingClient) -> str:
    """Incidents, each kind of refusal with when it came first and last, and what systemd has of the gateway."""
    seen: dict[str, list[float]] = {}
    for at, status, code, *_ in client.answers:
        seen.setdefault(f"{status} {code}", []).append(round(at - client.answers[0][0], 1))
    kinds = [f"{kind}: {len(times)} from {times[0]} to {times[-1]} s" for kind, times in seen.items()]
    journal = head.sh(
        "journalctl --no-pager -n 80 -o short-precise | grep -E 'door|caddy|supervisor|watchdog'", check=False
    )
    return "\n".join([driver.run("incidents", "show", "1").out, *kinds, journal])


@RUNTIME
def test_a_changed_recipe_that_fails_leaves_what_served(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """Guards a failed swap: the old recipe serves again, and clients saw nothing but 503 with the reason."""
    driver.good("up", driver.recipe(runtime, serving=OPEN))
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], home_folder(driver)) as client:
        done = driver.run("up", driver.recipe(runtime, OOM, serving=OPEN))
        assert done.code == 5, str(done)
        client.wait(200)
    assert "env.SPARKWRIGHT_SIMULATOR_FAULT: none -> oom@load" in done.err, "reported before anything stops"
    assert f"rolled back: {NAME} serves again" in done.err
    all_along(client, f"being replaced by recipe {NAME}", "out of memory" if runtime == "none" else "")
    one = driver.shown()
    assert one["state"] in ("ready", "degraded"), one
    assert one["supervised"]["live"]["incidents"] == 0, gateway_story(driver, testbed_nodes[0], client)
    assert "SPARKWRIGHT_SIMULATOR_FAULT" not in desired(testbed_nodes[0])["env"]
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@RUNTIME
def test_a_changed_recipe_takes_over_at_the_same_gateway(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """Its limits are the new ones, also those that the gateway itself keeps; nothing but 503 in between."""
    driver.good("up", driver.recipe(runtime, serving=OPEN))
    before = running(testbed_nodes)
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], home_folder(driver)) as client:
        changed = driver.recipe(runtime, serving={**OPEN, "context": 16384, "door": {"body_limit": "2MiB"}})
        done = driver.good("up", changed)
        client.wait(200)
    assert "serving.context: 32768 -> 16384" in done.err
    all_along(client, f"being replaced by recipe {NAME}")
    assert all(set(before[name]).isdisjoint(found) for name, found in running(testbed_nodes).items())
    assert desired(testbed_nodes[0])["serving"]["context"] == 16384
    assert driver.shown()["state"] in ("ready", "degraded")
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_without_a_rollback_the_gateway_keeps_the_reason(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """It is failed, and reports it to clients and in `status`; the old recipe restores it."""
    driver.good("up", driver.recipe("process", serving=OPEN))
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], home_folder(driver)) as client:
        done = driver.run("up", driver.recipe("process", OOM, serving=OPEN), "--no-rollback")
        assert done.code == 5 and "rolled back" not in done.err, str(done)
        assert [len(engines(node)) for node in testbed_nodes] == [0, 0]
        wait_until(lambda: client.once()[0] == 503 and "its replacement failed" in client.once()[2], "the reason")
        assert driver.run("status", "--json").json["deployments"][0]["state"] == "failed"
        driver.good("up", driver.recipe("process", serving=OPEN))
        client.wait(200)
    all_along(client)


@pytest.mark.full
@pytest.mark.parametrize("step", [pytest.param("start ranks", marks=pytest.mark.full), "engine"])
def test_ctrl_c_during_the_swap_restores_the_old_one(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], step: str
) -> None:
    """Guards the person who sees the wrong recipe name scroll by."""
    driver.good("up", driver.recipe("process", serving=OPEN))
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], home_folder(driver)) as client:
        call = driver.start("up", driver.recipe("process", BRISK, serving={**OPEN, "context": 16384}))
        done = call.saw(step).interrupt().finish()
        assert done.code == 130 and f"{NAME} is being started again as it was" in done.err, str(done)
        client.wait(200)
    all_along(client, "being replaced")
    assert desired(testbed_nodes[0])["serving"]["context"] == 32768
    story = gateway_story(driver, testbed_nodes[0], client)
    assert driver.shown()["supervised"]["live"]["incidents"] == 0, story


@pytest.mark.full
def test_an_up_that_is_killed_during_the_swap_restores_the_old_one(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Nobody is left to roll back but the supervisor, which misses the renewals."""
    driver.good("up", driver.recipe("process", serving=OPEN))
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], home_folder(driver)) as client:
        driver.start("up", driver.recipe("process", BRISK, serving={**OPEN, "context": 16384})).saw("engine").kill()
        client.wait(503)
        client.wait(200)
        told = driver.shown()
    assert told["state"] in ("ready", "degraded")
    all_along(client, "sent no renewal")


@pytest.fixture(
    params=[pytest.param(8443, id="the same port"), pytest.param(8543, marks=pytest.mark.full, id="another port")]
)
def gateway_port(request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param


@pytest.mark.full
def test_another_takes_its_place(driver: CommandDriver, testbed_nodes: list[ContainerNode], gateway_port: int) -> None:
    """Its gateway answers until the other's does, on the same port without a gap; nothing of the old one is left."""
    driver.good("up", driver.recipe("process", serving=OPEN))
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], home_folder(driver)) as client:
        serving = {**OPEN, "door": {"port": gateway_port}}
        done = driver.good("up", driver.recipe("process", name=OTHER, serving=serving), "--replace", NAME)
        new = PollingClient(client.address, gateway_port, client.key)
        new.wait(200)
    if gateway_port == client.port:
        # The kernel resets what waits to be accepted at the moment in which one of two listeners closes.
        all_along(client, f"being replaced by recipe {OTHER}", resets=2)
    else:
        gone = [status for _, status, *_ in client.answers]
        # In its last moments it may pass a request on to the new engine, which has the old one's port.
        assert 503 in gone and set(gone) <= {200, 503, 0}
    one = driver.shown()
    assert one["name"] == OTHER and one["state"] in ("ready", "degraded"), str(done)
    assert testbed_nodes[0].sh(f"ls {STATE}/supervision {STATE}/deployments").split().count(NAME) == 0
    driver.good("down", OTHER)
    assert_clean(testbed_nodes)


@pytest.mark.full
@RUNTIME
def test_another_that_fails_gives_its_place_back(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """Supervisor, gateway and keys are as they were; nothing of the other is left."""
    driver.good("up", driver.recipe(runtime, serving=OPEN))
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], home_folder(driver)) as client:
        done = driver.run("up", driver.recipe(runtime, OOM, name=OTHER, serving=OPEN), "--replace", NAME)
        assert done.code == 5 and f"rolled back: {NAME} serves again" in done.err, str(done)
        client.wait(200)
    all_along(client, f"being replaced by recipe {OTHER}")
    one = driver.shown()
    assert one["name"] == NAME and one["state"] in ("ready", "degraded")
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
@RUNTIME
def test_without_a_supervisor_the_caller_restores_it(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The record of `up --no-supervise` on the head is the way back."""
    driver.supervise = False
    driver.good("up", driver.recipe(runtime))
    done = driver.run("up", driver.recipe(runtime, OOM))
    assert done.code == 5 and f"rolled back: {NAME} serves again" in done.err, str(done)
    assert driver.good("status", "--json").json["deployments"][0]["state"] == "ready"
    assert [len(engines(node)) for node in testbed_nodes] == [1, 1]
    testbed_nodes[0].sh(f"rm {STATE}/deployments/{NAME}/desired.json")
    no_way = driver.run("up", driver.recipe(runtime, OOM))
    assert (
        no_way.code == 2 and "--no-rollback" in no_way.err and [len(engines(node)) for node in testbed_nodes] == [1, 1]
    )
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
