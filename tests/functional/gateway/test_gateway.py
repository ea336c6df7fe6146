"""Admission of clients, their routes, and the view of others: the real Caddy and the real key check before the
simulator."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from functional.gateway.gateways import ENGINE_KEY, KEY, LIMIT, LocalGateway
from functional.simulator.process import HEAD_ADDRESS, SimulatorProcess
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.openai_http import OpenAiEndpoint
from sparkwright.domain.live import DeploymentState

WRONG = (
    "",
    "x",
    KEY[:-1],
    KEY + "0",
    KEY.upper(),
    KEY.replace("1f", "2f"),
    f" {KEY} x",
    "sk-sw-" + "00" * 24,
    "null",
    "*",
    "Bearer",
    "a" * 8000,
    "sk-" + KEY,
    KEY[::-1],
    "%2e",
    "' or ''='",
    "undefined",
    "key-0",
)
OPEN_IN_VLLM = ("/tokenize", "/detokenize", "/invocations", "/metrics", "/health", "/ping", "/load", "/docs")
TRICKS = ("/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "//metrics", "/v1/./../metrics", "/v1", "/v1;/x")


def openai_error(answer: httpx.Response) -> dict[str, object]:
    """The error in OpenAI's shape."""
    told = answer.json()["error"]
    assert set(told) == {"message", "type", "param", "code"}, told
    return dict(told)


def ask_with_curl(gateway: LocalGateway, path: str, *words: str) -> tuple[int, str]:
    """Asks with curl, which sends the path as it is given."""
    argv = ["curl", "-sk", "--path-as-is", "-o", "-", "-w", "\n%{http_code}", *words, f"{gateway.url}{path}"]
    said, _, code = subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout.rpartition("\n")
    return int(code), said


def test_a_known_key_gets_in(gateway: LocalGateway) -> None:
    """Guards that each header that clients use opens the gateway, with the engine's own key put in its place."""
    assert gateway.get("/v1/models").json()["data"][0]["id"] == "tiny"
    for name in ("X-Api-Key", "Api-Key"):
        assert gateway.get("/v1/models", key="", **{name: KEY}).status_code == 200
    assert gateway.get("/v1/models", key=ENGINE_KEY).status_code == 200
    assert (
        httpx.get(f"http://{gateway.engine}/v1/models", headers={"Authorization": f"Bearer {KEY}"}).status_code == 401
    )


def test_any_other_key_is_refused(gateway: LocalGateway) -> None:
    """Guards that nothing near a key, around a key or without one gets further than 401."""
    for wrong in WRONG:
        refused = gateway.get("/v1/models", key=wrong)
        assert (refused.status_code, openai_error(refused)["code"]) == (401, "invalid_api_key"), wrong


def test_a_revoked_key_is_refused_at_once_and_its_stream_goes_on(gateway: LocalGateway) -> None:
    """Guards that revoking is immediate for new requests and cuts no answer that is under way."""
    body = {"model": "tiny", "prompt": "count", "max_tokens": 60, "stream": True}
    with gateway.client() as client, client.stream("POST", "/v1/completions", json=body) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("data:")
        gateway.keys("sk-sw-" + "2e" * 24)
        assert gateway.get("/v1/models").status_code == 401
        assert "data: [DONE]" in list(lines)


def test_only_v1_is_there(gateway: LocalGateway) -> None:
    """Guards that what engines leave open next to /v1 cannot be reached, however the path is written."""
    for path in (*OPEN_IN_VLLM, *TRICKS):
        code, said = ask_with_curl(gateway, path, "-H", f"Authorization: Bearer {KEY}")
        assert (code, json.loads(said)["error"]["code"]) == (404, "unknown_url"), path


def test_a_body_over_the_limit_is_413(gateway: LocalGateway) -> None:
    """Guards the limit for a length that is announced and for one that is not; the engine sees neither."""
    big = b'{"prompt": "' + b"x" * LIMIT + b'"}'

    def in_parts() -> Iterator[bytes]:
        yield big[:1000]
        yield big[1000:]

    with gateway.client() as client:
        for body in (big, in_parts()):
            refused = client.post("/v1/completions", content=body, headers={"Content-Type": "application/json"})
            assert refused.status_code == 413, refused.text
            assert openai_error(refused)["code"] == "request_too_large"
        fits = {"model": "tiny", "prompt": "x" * 1000, "max_tokens": 1}
        assert client.post("/v1/completions", json=fits).status_code == 200


def test_headers_without_end_are_431_at_once(gateway: LocalGateway) -> None:
    """Guards the memory of the gateway: 100 MB of headers are refused long before they have come."""
    plain = socket.create_connection((HEAD_ADDRESS, gateway.port), 30.0)
    with gateway.trusted.wrap_socket(plain, server_hostname="localhost") as link:
        link.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n")
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 100 << 20:
                link.sendall(b"X-Long: " + b"x" * 8000 + b"\r\n")
                sent += 8010
        answer = b""
        with contextlib.suppress(OSError):
            answer = link.recv(4096)
    assert sent < 8 << 20
    assert not answer or b" 431 " in answer, answer
    assert gateway.get("/v1/models").status_code == 200


@pytest.mark.full
def test_keys_are_in_no_log(gateway: LocalGateway) -> None:
    """Guards that neither a client's key nor the engine's is written down, also when the engine fails."""
    gateway.engine = f"{HEAD_ADDRESS}:1"
    gateway.write()
    gateway.reload()
    for name in ("Authorization", "X-Api-Key", "Api-Key"):
        value = f"Bearer {KEY}" if name == "Authorization" else KEY
        assert gateway.get("/v1/models", key="", **{name: value}).status_code == 503
    said = gateway.log("caddy") + gateway.log("service")
    assert KEY not in said
    assert ENGINE_KEY not in said


@pytest.mark.full
def test_http_2_is_spoken(gateway: LocalGateway) -> None:
    """Guards both versions of HTTP."""
    for version, said in (("--http2", "2"), ("--http1.1", "1.1")):
        told = ["-w", "%{http_version} %{http_code}", "-o", "/dev/null", "-H", f"Authorization: Bearer {KEY}"]
        argv = ["curl", "-sk", version, *told, f"{gateway.url}/v1/models"]
        assert subprocess.check_output(argv, text=True, timeout=60) == f"{said} 200"


def test_a_client_that_does_not_trust_the_ca_is_warned(gateway: LocalGateway) -> None:
    """Guards that the certificate is from our own CA, and good for the name and the address alike."""
    with pytest.raises(httpx.ConnectError, match="certificate"):
        httpx.get(f"{gateway.url}/v1/models")
    for host in ("localhost", "127.0.0.1"):
        assert httpx.get(f"https://{host}:{gateway.port}/", verify=gateway.trusted).status_code == 404
    assert ssl.get_server_certificate(("127.0.0.1", gateway.port)).startswith("-----BEGIN")


def test_while_refusing_it_reports_why_and_until_when(gateway: LocalGateway) -> None:
    """Guards what a client reads while the engine is away: 503, what happens, and when to come back."""
    now = time.time()
    why = "rank 1 on spark-2 exited with 137"
    waits = {"since": now - 65, "refusing": True, "why": why, "back_at": now + 230}
    gateway.live(at=now + 14, phase=DeploymentState.LOADING, **waits)  # believed until 15 s after that
    refused = gateway.get("/v1/models")
    assert refused.status_code == 503
    assert 170 <= int(refused.headers["Retry-After"]) <= 230
    told = openai_error(refused)
    assert told["type"] == "service_unavailable"
    assert why in str(told["message"]) and "3 min" in str(told["message"])
    assert gateway.get("/v1/models", key="x").status_code == 401


def test_a_short_gap_is_waited_for(gateway: LocalGateway) -> None:
    """Guards that a request in a gap of a second or two is answered late and not refused."""
    now = time.time()
    gateway.live(phase=DeploymentState.LOADING, since=now - 5, refusing=True, back_at=now + 8)
    with gateway.client() as client:
        began = time.monotonic()
        held = httpx.Request("GET", f"{gateway.url}/v1/models", headers=client.headers)
        threading.Timer(1.0, gateway.live).start()
        answer = client.send(held)
    assert answer.status_code == 200
    assert time.monotonic() - began > 0.9


@pytest.mark.parametrize("state", ["missing", "old", "broken"])
def test_without_a_supervisor_the_engine_is_asked(gateway: LocalGateway, state: str) -> None:
    """Guards that a supervisor that has ended closes no gateway: serving goes on."""
    now = time.time()
    if state == "old":
        gateway.live(at=now - 60, phase=DeploymentState.LOADING, refusing=True)
    if state == "broken":
        (gateway.home / "live.json").write_text("{half")
    assert gateway.get("/v1/models").status_code == 200


def test_a_dead_gateway_service_lets_nobody_in(gateway: LocalGateway) -> None:
    """Guards that without somebody to check keys the answer is 503, and that it is good again automatically."""
    gateway.end("service")
    refused = gateway.get("/v1/models")
    assert (refused.status_code, openai_error(refused)["code"]) == (503, "gateway_unavailable")
    gateway.start_service()
    assert gateway.get("/v1/models").status_code == 200


@pytest.mark.full
def test_a_probe_distinguishes_a_gateway_that_works_from_any_other(gateway: LocalGateway) -> None:
    """Guards what the supervisor believes: it is asked for a key, by a server whose CA nobody here trusts."""

    def probe() -> int:
        return asyncio.run(OpenAiEndpoint(SystemClock()).probe(f"{gateway.url}/v1/models"))

    assert probe() == 401
    gateway.live(refusing=True, why="it is away", phase=DeploymentState.DRAINING)
    assert probe() == 401
    gateway.end("service")
    assert probe() == 503
    gateway.end("caddy")
    assert probe() == 0


@pytest.mark.full
def test_both_programs_come_back_after_a_power_cut(gateway: LocalGateway) -> None:
    """Guards that sockets that were left lying about stop neither of them."""
    gateway.end("service", "caddy")
    assert (gateway.folder / "service.sock").exists() and (gateway.folder / "admin.sock").exists()
    gateway.start_service()
    gateway.start_caddy()
    assert gateway.get("/v1/models").status_code == 200


@pytest.mark.full
def test_the_sockets_are_for_nobody_else(gateway: LocalGateway) -> None:
    """Guards modes: the folder 0700, the service's socket 0600; the admin side of Caddy is no TCP port."""
    assert gateway.folder.stat().st_mode & 0o777 == 0o700
    assert (gateway.folder / "service.sock").stat().st_mode & 0o777 == 0o600
    with pytest.raises(httpx.ConnectError):
        httpx.get("http://127.0.0.1:2019/config/")


@pytest.mark.full
def test_figures_are_on_loopback_and_nothing_else_is(gateway: LocalGateway) -> None:
    """Guards that the figures' port does not check keys for anyone who can reach it."""
    at = f"http://127.0.0.1:{gateway.metrics}"
    assert httpx.get(f"{at}/metrics").status_code == 200
    assert httpx.get(f"{at}/check", headers={"Authorization": f"Bearer {KEY}"}).status_code == 404


def test_the_simulator_stays_behind(engine: SimulatorProcess, gateway: LocalGateway) -> None:
    """Guards that a client can report the gateway nothing that only Caddy may report."""
    fake = {"X-Door-Uri": "/v1/models", "X-Door-Engine-Key": "Bearer x", "X-Door-Method": "OPTIONS"}
    assert gateway.get("/v1/models", key="", **fake, **{"Access-Control-Request-Method": "GET"}).status_code == 401
    assert gateway.get("/v1/models", **fake).status_code == 200
