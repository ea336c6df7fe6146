"""A recipe's gateway settings changed while it serves: they take effect, or nothing changes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.artifacts import FakeArtifacts
from fakes.calibrations import FakeCalibrations
from fakes.clock import FakeClock
from fakes.endpoint import FakeEndpoint
from fakes.host import FakeHost
from fakes.hosts import FakeHosts
from fakes.sink import FakeSink
from sparkwright.adapters.artifacts import FolderKeyring
from sparkwright.app.serve.gateway import GatewayInstall, install_gateway, refuse_shared_change, settled
from sparkwright.app.services import Services
from sparkwright.domain.cluster import Cluster, Node, NodePaths
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import Refused
from sparkwright.domain.plan import Placement, Plan
from sparkwright.domain.recipe import EngineChoice, Expose, Gateway, Model, Recipe, Serving
from sparkwright.domain.service import Installation

STATE = "/s"
HOME = "/s/supervision/big"
WHERE = Installation("spark-1", HOME, STATE, "/usr/bin/python3", "/s/runtime/1")
CLUSTER = Cluster("desk", (Node("spark-1", "ann@spark.lan", paths=NodePaths(state=STATE)),), "spark-1")
OPEN_TO = {Expose.ALL: "all addresses, tls internal", Expose.LOOPBACK: "127.0.0.1, tls internal"}
LOOK = """@@ keys
{{"keys": []}}
@@ keys-mode
600
@@ keys-file
/s/door/keys.json
@@ caddy
/usr/bin/caddy
2.8.4
@@ image
@@ host
spark
@@ addresses
10.0.0.1
@@ user
1000:1000
@@ port
LISTEN 0 4096 *:8443 *:* users:(("caddy",pid=7,fd=3))
@@ front
{front}
@@ behind
{behind}
@@ ours
caddy run --config caddy.json
"""


def plan(expose: Expose, port: int = 8443) -> Plan:
    recipe = Recipe("big", "Big", Model("org/big"), EngineChoice("vllm", "0.21.0"))
    recipe = replace(recipe, serving=Serving(expose=expose, gateway=Gateway(port=port)))
    return Plan("big", recipe, CLUSTER, Placement(("spark-1",), {}), (), (), (), "127.0.0.1", 8000, "big")


def gateway_head(was: Expose, behind: str, route_port: int = 8443) -> FakeHost:
    """A head whose gateway on port 8443 runs and was made for `was`."""
    front = json.dumps({"port": 8443, "keys": "/s/door/keys.json", "metrics": 8444, "open_to": OPEN_TO[was]})
    route = json.dumps({"deployment": "big", "engine": "127.0.0.1:8000", "limit": 1, "port": route_port})
    host = FakeHost("spark-1", default=Completed(0, ""))
    return host.on("@@ front", LOOK.format(front=front, behind=behind)).on("door/door.json", route)


def services(host: FakeHost) -> Services:
    return Services(
        cluster=CLUSTER,
        hosts=FakeHosts(host),
        endpoint=FakeEndpoint(),
        clock=FakeClock(),
        save_evidence=FakeArtifacts().save,
        calibrations=FakeCalibrations(),
        sink=FakeSink(),
        who="ann@desk",
        nonce="1",
    )


async def installed(host: FakeHost, asked: Plan) -> tuple[GatewayInstall, int]:
    """The install's result, and the port of the route that was written."""
    made = await install_gateway(services(host), asked, WHERE)
    return made, json.loads(host.files[f"{HOME}/door/door.json"])["port"]


@pytest.mark.parametrize(("was", "to"), [(Expose.ALL, Expose.LOOPBACK), (Expose.LOOPBACK, Expose.ALL)])
async def test_the_only_deployment_changes_who_may_reach_it(was: Expose, to: Expose) -> None:
    """A deployment is no conflict with itself: the route stays and Caddy listens where the recipe says now."""
    host = gateway_head(was, behind="big")
    made, port = await installed(host, plan(to))
    assert [found.code for found in made.findings] == [] and made.listens
    assert port == 8443
    config = json.loads(host.files["/s/supervision/_gateway-8443/door/caddy.json"])
    listens = config["apps"]["http"]["servers"]["door"]["listen"]
    assert listens == {Expose.ALL: [":8443"], Expose.LOOPBACK: ["127.0.0.1:8443"]}[to]
    assert any("takes over its new configuration" in change for change in host.changes)


async def test_a_real_conflict_is_refused_before_anything_changes() -> None:
    """Another deployment keeps the port open: no file is written, and the error names it."""
    host = gateway_head(Expose.ALL, behind="big\nother")
    with pytest.raises(Refused) as caught:
        await refuse_shared_change(services(host), plan(Expose.LOOPBACK))
    assert caught.value.exit_code == 1 and "other" in caught.value.message
    assert [found.code for found in caught.value.findings] == ["DOOR009"]
    assert host.changes == [] and host.files == {}


async def test_a_real_conflict_never_takes_a_route_that_works() -> None:
    """A relaunch with such a recipe keeps its clients; only one that never had the gateway gets none."""
    made, port = await installed(gateway_head(Expose.ALL, behind="big\nother"), plan(Expose.LOOPBACK))
    assert [found.code for found in made.findings] == ["DOOR009"] and port == 8443
    made, port = await installed(gateway_head(Expose.ALL, behind="big\nother", route_port=0), plan(Expose.LOOPBACK))
    assert [found.code for found in made.findings] == ["DOOR009"] and port == 0
    await refuse_shared_change(services(gateway_head(Expose.ALL, "big\nother", route_port=0)), plan(Expose.LOOPBACK))


async def test_another_port_leaves_no_gateway_on_the_old_one() -> None:
    """The caller is told that the old gateway may have nobody left."""
    made, _ = await installed(gateway_head(Expose.ALL, behind="big", route_port=9443), plan(Expose.ALL))
    assert made.moved
    made, _ = await installed(gateway_head(Expose.ALL, behind="big"), plan(Expose.ALL))
    assert not made.moved


async def test_what_is_replaced_has_no_say_in_the_settings() -> None:
    """`switch` to a recipe with another `serving.expose` gets its gateway."""
    host = gateway_head(Expose.ALL, behind="old", route_port=0)
    made = await install_gateway(services(host), plan(Expose.LOOPBACK), WHERE, replaces="old")
    assert made.findings == () and made.listens
    made = await install_gateway(services(gateway_head(Expose.ALL, "old", 0)), plan(Expose.LOOPBACK), WHERE)
    assert [found.code for found in made.findings] == ["DOOR009"]


def root_of(letter: str) -> str:
    """A text in the form of a CA's certificate."""
    return f"-----BEGIN CERTIFICATE-----\n{letter * 4}\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("given", "here", "told", "kept"),
    [("", "", 0, 0), ("B", "B", 0, 0), ("A", "", 1, 0), ("A", "A", 1, 1), ("B", "A", 1, 1)],
    ids=["first", "same", "another laptop's", "ours", "only ours"],
)
async def test_up_tells_that_clients_need_another_ca(
    tmp_path: Path, given: str, here: str, told: int, kept: int
) -> None:
    """Guards a CA that was made anew: one finding with the file for clients, and the earlier one is kept."""
    host, ring = gateway_head(Expose.ALL, behind="big"), FolderKeyring(tmp_path)
    host.on("does not answer after", root_of("B")).on("cmp -s", root_of(given) if given else "")
    if here:
        ring.save("desk", "ca.crt", root_of(here))
    reach, _ = await settled(replace(services(host), keyring=ring), plan(Expose.ALL), WHERE, "https://spark-1:8443/v1")
    assert reach and [one.code for one in reach.findings] == ["SUP010"] * told
    assert all(f"{tmp_path}/desk/ca.crt" in (one.remedy or "") for one in reach.findings)
    assert (tmp_path / "desk/ca.crt").read_text() == root_of("B")
    assert len(list(tmp_path.glob("desk/ca-*.crt"))) == kept
    noted = [command for command in host.changes if "the CA that clients are given" in command]
    assert len(noted) == (given != "B")


async def test_clients_get_the_address_that_ssh_connects_to() -> None:
    """Guards a URL with an alias of ssh's configuration: it leads clients nowhere, and no certificate has it."""
    host = gateway_head(Expose.ALL, behind="big")
    host.called = "spark-7.example.org"
    made, _ = await installed(host, plan(Expose.ALL))
    assert made.url == "https://spark-7.example.org:8443/v1"
    assert "spark-7.example.org" in host.files["/s/supervision/_gateway-8443/door/caddy.json"].decode()
