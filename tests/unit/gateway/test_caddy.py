"""The configuration given to Caddy; the functional tests show that Caddy understands it."""

import hashlib
import json

import pytest

from sparkwright.domain.recipe import GatewayTls
from sparkwright.gateway.caddy import GatewayConfig, config, fingerprint, given_root, root_certificate
from sparkwright.gateway.decide import GATEWAY_BROKEN, GatewayAnswer, key_missing, retry_later

GATEWAY = GatewayConfig(("",), 8443, "/state/door/ca", names=("spark-1", "10.0.0.1"))


def servers(gateway: GatewayConfig) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = config(gateway)["apps"]["http"]["servers"]
    return found


@pytest.mark.parametrize("tls", GatewayTls)
def test_only_the_gateway_listens(tls: GatewayTls) -> None:
    """Guards that the gateway's own port is the only one in the whole configuration, admin side included."""
    gateway = GatewayConfig(("127.0.0.1", "fd00::1"), 8443, "/ca", tls, ("a",), "/c", "/k")
    listening = [address for server in servers(gateway).values() for address in server["listen"]]  # type: ignore[attr-defined]
    assert listening == ["127.0.0.1:8443", "[fd00::1]:8443"]
    assert config(gateway)["admin"] == {"listen": "unix/admin.sock", "config": {"persist": False}}


def test_all_addresses_are_one_listener() -> None:
    """Guards IPv4 and IPv6 alike where the recipe reports `all`."""
    assert servers(GATEWAY)["door"]["listen"] == [":8443"]


def test_tls_by_its_three_kinds() -> None:
    """Guards who issues the certificate, and that without TLS nothing of it is left."""
    internal = config(GATEWAY)["apps"]
    assert internal["tls"]["automation"]["policies"][0]["subjects"] == ["spark-1", "10.0.0.1"]
    assert internal["pki"]["certificate_authorities"]["local"]["install_trust"] is False
    files = config(GatewayConfig(("",), 1, "/ca", GatewayTls.FILES, ("a",), "/c.pem", "/k.pem"))["apps"]
    assert files["tls"]["certificates"]["load_files"][0] == {"certificate": "/c.pem", "key": "/k.pem", "tags": ["door"]}
    off = config(GatewayConfig(("",), 1, "/ca", GatewayTls.OFF))["apps"]
    assert set(off) == {"http"}
    assert "tls_connection_policies" not in off["http"]["servers"]["door"]


def test_no_connection_is_kept() -> None:
    """Guards good requests from a connection whose end is the end of the answer before."""
    (ours,) = servers(GATEWAY)["door"]["routes"][1]["handle"]  # type: ignore[index]
    assert ours["upstreams"] == [{"dial": "unix/service.sock"}]
    assert ours["transport"]["keep_alive"] == {"enabled": False}


def test_no_secret_is_in_it() -> None:
    """Guards that requests are not logged, and that no header is written by Caddy's configuration."""
    assert "Authorization" not in json.dumps(servers(GATEWAY)["door"]["routes"][1])
    assert config(GATEWAY)["logging"]["logs"]["default"]["exclude"] == ["http.log.error", "http.log.access"]


def test_the_root_certificate_is_where_caddy_keeps_it() -> None:
    """Guards the path that `up` fetches."""
    assert root_certificate("/ca") == "/ca/pki/authorities/local/root.crt"


@pytest.mark.parametrize("answer", [key_missing(True), GATEWAY_BROKEN, retry_later("c", 'with "quotes" and ü', 7)])
def test_answers_are_in_openais_shape(answer: GatewayAnswer) -> None:
    """Guards that clients find message, type and code where they look."""
    error = json.loads(answer.body)["error"]
    assert error == {"message": answer.message, "type": answer.kind, "param": None, "code": answer.code}
    assert answer.headers.get("Retry-After") == (str(answer.retry_after) if answer.retry_after else None)


def test_the_ca_that_clients_were_given() -> None:
    """Guards what is compared: the certificate itself by the digest that openssl shows, and its sameness."""
    text = "-----BEGIN CERTIFICATE-----\nAAAA\nAAAA\n-----END CERTIFICATE-----\n"
    assert fingerprint(text) == hashlib.sha256(bytes(6)).hexdigest()
    assert given_root(text) == (text, True) and given_root(f"{text}\nother\n") == (text, False)
    assert given_root("") == ("", True)
