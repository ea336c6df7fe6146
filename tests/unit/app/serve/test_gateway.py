"""The gateway's plan: where it listens, what it is called, what is run."""

from dataclasses import replace

import pytest

from sparkwright.app.serve.gateway import _addresses, _caddy, _front, _names, _route, endpoint, shared
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.plan import Placement, Plan
from sparkwright.domain.recipe import EngineChoice, Expose, Gateway, GatewayTls, Model, Recipe, Serving
from sparkwright.domain.service import GatewayFacts, Installation

WHERE = Installation("spark-1", "/s/supervision/big", "/s", "/usr/bin/python3", "/s/runtime/1")
SEEN = GatewayFacts(
    "spark-1", 8443, "/usr/bin/caddy", "2.11.4", hostname="promaxgb10", addresses=("10.0.0.1", "fd00::1")
)
AT = {Expose.LOOPBACK: "127.0.0.1", Expose.FABRIC: "192.168.100.10", Expose.ALL: "127.0.0.1"}


def plan(expose: Expose = Expose.LOOPBACK, ssh: str = "ann@spark.lan", **gateway: object) -> Plan:
    recipe = Recipe("big", "Big", Model("org/big"), EngineChoice("vllm", "0.21.0"))
    recipe = replace(recipe, serving=Serving(expose=expose, gateway=Gateway(**gateway)))  # type: ignore[arg-type]
    cluster = Cluster("desk", (Node("spark-1", ssh),), "spark-1")
    return Plan("big", recipe, cluster, Placement(("spark-1",), {}), (), (), (), AT[expose], 8000, "big")


@pytest.mark.parametrize(
    ("expose", "addresses", "url"),
    [
        (Expose.LOOPBACK, ("127.0.0.1",), "https://127.0.0.1:8443/v1"),
        (Expose.FABRIC, ("192.168.100.10", "127.0.0.1"), "https://192.168.100.10:8443/v1"),
        (Expose.ALL, ("",), "https://10.0.0.7:8443/v1"),
    ],
)
def test_it_listens_where_the_recipe_states(expose: Expose, addresses: tuple[str, ...], url: str) -> None:
    """Guards that the gateway is no wider than `serving.expose`, and that the URL is one that works from there."""
    assert _addresses(plan(expose)) == addresses
    assert endpoint(plan(expose), "10.0.0.7") == url
    assert _route(plan(expose), False).engine == f"{AT[expose]}:8000"
    assert _route(plan(expose), False).remember == 0, "nobody's texts are kept unless the recipe says so"


def test_the_url_names_what_clients_call_the_head() -> None:
    """Guards the node itself, and names of the owner's own."""
    assert endpoint(plan(Expose.ALL, ssh="local", tls=GatewayTls.OFF), "promaxgb10") == "http://promaxgb10:8443/v1"
    assert endpoint(plan(Expose.ALL, names=("ai.example.org",)), "x") == "https://ai.example.org:8443/v1"
    assert endpoint(plan(Expose.ALL), "fd00::7") == "https://[fd00::7]:8443/v1"


def test_the_certificate_has_every_name_once() -> None:
    """Guards that clients may use the host's own name, the ssh name, mDNS, what the recipe adds, and addresses."""
    names = _names(
        plan(), replace(SEEN, called="spark.example.org"), Gateway(names=("ai.example.org", "10.0.0.1")), "spark-1"
    )
    assert names[:2] == ("promaxgb10", "ai.example.org")
    assert set(names) >= {
        "spark.lan",
        "spark.example.org",
        "spark-1",
        "promaxgb10.local",
        "localhost",
        "127.0.0.1",
        "10.0.0.1",
        "fd00::1",
    }
    assert len(names) == len(set(names))


def test_the_program_or_else_the_container() -> None:
    """Guards that the container has the same folders, no image is fetched, and no more rights than it needs."""
    place = shared(WHERE, 8443)
    front = _front(plan(), place, SEEN, Gateway())
    assert _caddy("_gateway-8443", place, SEEN, front).argv == ("/usr/bin/caddy", "run", "--config", "caddy.json")
    bare = replace(SEEN, caddy="", image="sha256:1", user="1000:1000")
    argv = _caddy("_gateway-8443", place, bare, front).argv
    assert argv[:2] == ("/bin/sh", "-c") and argv[4] == "sparkwright-caddy-_gateway-8443"
    assert {"--pull=never", "--cap-drop=ALL", "--user=1000:1000", "--network=host"} < set(argv)
    assert {f"{place.home}/door:{place.home}/door", "/s/door/ca:/s/door/ca"} < set(argv)
    given = replace(front, tls=GatewayTls.FILES, certificate="/c.pem", key="/k.pem")
    assert {"/c.pem:/c.pem:ro", "/k.pem:/k.pem:ro"} < set(_caddy("_gateway-8443", place, bare, given).argv)
