"""A gateway setting of the only deployment changed, and `up` again: it takes effect, and clients are served on."""

import socket

import pytest

from cluster.clients import asking
from cluster.drive import NAME, Drive, assert_clean, running
from testbed import Node

pytestmark = pytest.mark.full


@pytest.fixture
def drive(drive: Drive) -> Drive:
    drive.supervise = True
    drive.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    return drive


def is_open(address: str, port: int) -> bool:
    with socket.socket() as link:
        link.settimeout(5)
        return link.connect_ex((address, port)) == 0


def asked_on_head(head: Node, key: str, port: int = 8443) -> str:
    """HTTP status of a request on the head itself."""
    body = '{"model": "twin-tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}'
    words = f"curl -sk -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer {key}'"
    words += " -H 'Content-Type: application/json'"
    return head.sh(f"{words} -d '{body}' https://127.0.0.1:{port}/v1/chat/completions")


def the_key(drive: Drive) -> str:
    folder = drive.folder / "home/.local/state/sparkwright/keys/testbed"
    return next(folder.glob("*.key")).read_text().strip()


def test_who_may_reach_the_only_deployment_is_changed_by_up(drive: Drive, nodes: list[Node]) -> None:
    """`all` to `loopback` closes the port and serves on the head; back to `all` serves everybody again."""
    head = nodes[0]
    drive.good("up", drive.recipe("process", serving={"expose": "all"}))
    before, key = running(nodes), the_key(drive)
    with asking(head, drive.folder / "home"):
        pass
    closed = drive.good("up", drive.recipe("process", serving={"expose": "loopback"}), "--json").json
    assert "DOOR009" not in [one["code"] for one in closed["supervision"]["findings"]], closed["supervision"]
    assert not is_open(head.mgmt, 8443)
    assert asked_on_head(head, key) == "200"
    assert closed["supervision"]["reach"]["url"] == "https://127.0.0.1:8443/v1"
    drive.good("up", drive.recipe("process", serving={"expose": "all"}))
    with asking(head, drive.folder / "home") as client:
        client.wait(200)
    assert running(nodes) == before, "the engine was not touched"
    drive.good("down", NAME)
    assert_clean(nodes)


@pytest.mark.full
def test_another_port_takes_the_gateway_along(drive: Drive, nodes: list[Node]) -> None:
    """The new port serves and the old one is closed; no program of the old gateway is left."""
    head = nodes[0]
    drive.good("up", drive.recipe("process", serving={"expose": "all"}))
    drive.good("up", drive.recipe("process", serving={"expose": "all", "door": {"port": 9443}}))
    with asking(head, drive.folder / "home", 9443) as client:
        client.wait(200)
    assert not is_open(head.mgmt, 8443)
    assert head.sh("ls /home/spark/.local/state/sparkwright/supervision").split() == ["_gateway-9443", NAME]
    drive.good("down", NAME)
    assert_clean(nodes)


@pytest.mark.full
def test_two_that_share_a_port_are_refused_before_anything_changes(drive: Drive, nodes: list[Node]) -> None:
    """Exit 1 with DOOR009; both serve as before."""
    head = nodes[0]
    recipe = drive.recipe("process", serving={"expose": "all"}, nodes=1, parallelism={"tp": 1})
    drive.good("up", recipe)
    drive.good(
        "up",
        drive.recipe("process", serving={"expose": "all", "port": 8010}, nodes=1, parallelism={"tp": 1}),
        "--name",
        "other",
        "--force",
        "a test",
    )
    before = running(nodes)
    refused = drive.run("up", drive.recipe("process", serving={"expose": "loopback"}, nodes=1, parallelism={"tp": 1}))
    assert refused.code == 1 and "DOOR009" in refused.err and "other" in refused.err, str(refused)
    assert running(nodes) == before and is_open(head.mgmt, 8443)
    with asking(head, drive.folder / "home") as client:
        client.wait(200)
    drive.good("down", "other")
    drive.good("down", NAME)
    assert_clean(nodes)
