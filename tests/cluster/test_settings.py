"""A gateway setting of the only deployment changed, and `up` again: it takes effect, and clients are served on."""

import socket

import pytest

from cluster.clients import asking
from cluster.drive import NAME, CommandDriver, assert_clean, running
from testbed import ContainerNode

pytestmark = pytest.mark.full


@pytest.fixture
def driver(driver: CommandDriver) -> CommandDriver:
    driver.supervise = True
    driver.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    return driver


def is_open(address: str, port: int) -> bool:
    with socket.socket() as link:
        link.settimeout(5)
        return link.connect_ex((address, port)) == 0


def asked_on_head(head: ContainerNode, key: str, port: int = 8443) -> str:
    """HTTP status of a request on the head itself."""
    body = '{"model": "twin-tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}'
    words = f"curl -sk -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer {key}'"
    words += " -H 'Content-Type: application/json'"
    return head.sh(f"{words} -d '{body}' https://127.0.0.1:{port}/v1/chat/completions")


def the_key(drive: CommandDriver) -> str:
    folder = drive.folder / "home/.local/state/sparkwright/keys/testbed"
    return next(folder.glob("*.key")).read_text().strip()


def test_who_may_reach_the_only_deployment_is_changed_by_up(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """`all` to `loopback` closes the port and serves on the head; back to `all` serves everybody again."""
    head = testbed_nodes[0]
    driver.good("up", driver.recipe("process", serving={"expose": "all"}))
    before, key = running(testbed_nodes), the_key(driver)
    with asking(head, driver.folder / "home"):
        pass
    closed = driver.good("up", driver.recipe("process", serving={"expose": "loopback"}), "--json").json
    assert "DOOR009" not in [one["code"] for one in closed["supervision"]["findings"]], closed["supervision"]
    assert not is_open(head.mgmt, 8443)
    assert asked_on_head(head, key) == "200"
    assert closed["supervision"]["reach"]["url"] == "https://127.0.0.1:8443/v1"
    driver.good("up", driver.recipe("process", serving={"expose": "all"}))
    with asking(head, driver.folder / "home") as client:
        client.wait(200)
    assert running(testbed_nodes) == before, "the engine was not touched"
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_another_port_takes_the_gateway_along(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The new port serves and the old one is closed; no program of the old gateway is left."""
    head = testbed_nodes[0]
    driver.good("up", driver.recipe("process", serving={"expose": "all"}))
    driver.good("up", driver.recipe("process", serving={"expose": "all", "door": {"port": 9443}}))
    with asking(head, driver.folder / "home", 9443) as client:
        client.wait(200)
    assert not is_open(head.mgmt, 8443)
    assert head.sh("ls /home/spark/.local/state/sparkwright/supervision").split() == ["_gateway-9443", NAME]
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_two_that_share_a_port_are_refused_before_anything_changes(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Exit 1 with DOOR009; both serve as before."""
    head = testbed_nodes[0]
    recipe = driver.recipe("process", serving={"expose": "all"}, nodes=1, parallelism={"tp": 1})
    driver.good("up", recipe)
    driver.good(
        "up",
        driver.recipe("process", serving={"expose": "all", "port": 8010}, nodes=1, parallelism={"tp": 1}),
        "--name",
        "other",
        "--force",
        "a test",
    )
    before = running(testbed_nodes)
    refused = driver.run("up", driver.recipe("process", serving={"expose": "loopback"}, nodes=1, parallelism={"tp": 1}))
    assert refused.code == 1 and "DOOR009" in refused.err and "other" in refused.err, str(refused)
    assert running(testbed_nodes) == before and is_open(head.mgmt, 8443)
    with asking(head, driver.folder / "home") as client:
        client.wait(200)
    driver.good("down", "other")
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
