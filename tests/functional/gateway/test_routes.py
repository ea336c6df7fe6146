"""The calls that reach the engine: the real Caddy and the real key check before a server that notes what it is sent."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from functional.gateway.gateways import ENGINE_KEY, KEY, LocalGateway
from functional.gateway.test_gateway import ask_with_curl, openai_error
from sparkwright.engines.catalog import ENGINES
from sparkwright.engines.tables import routes

WITH_KEY = ("-H", f"Authorization: Bearer {KEY}")
REFUSED = (
    "POST /v1/load_lora_adapter",
    "POST /v1/unload_lora_adapter",
    "GET /v1/loads",
    "GET /v1/health",
    "POST /v1/chat/completions/control",
    "POST /v1/kv_cache_hints",
    "GET /v1/chat/completions",
    "DELETE /v1/models",
    "PUT /v1/completions",
    "OPTIONS /v1/chat/completions",
    "TRACE /v1/models",
)
SPELLINGS = (
    "/v1/%6coad_lora_adapter",
    "/v1/models/../load_lora_adapter",
    "/v1/models/%2e%2e/load_lora_adapter",
    "/v1/models%2f..%2fload_lora_adapter",
    "/v1//load_lora_adapter",
    "//v1/load_lora_adapter",
    "/v1/LOAD_LORA_ADAPTER",
    "/V1/load_lora_adapter",
    "/v1/load_lora_adapter/",
    "/v1/load_lora_adapter;x=/v1/chat/completions",
    "/v1/chat/completions;/../../load_lora_adapter",
    "/v1\\load_lora_adapter",
    "/v1/%5cload_lora_adapter",
    "/v1/load_lora_adapter%00/v1/models",
    "/v1/load_lora_adapter?/v1/chat/completions",
    "/v1/responses/x%2f..%2f..%2fload_lora_adapter/cancel",
    "/v1/responses/../cancel",
    "/v1/chat%2fcompletions",
)


@dataclass
class Backend:
    """Answers 200 to everything. seen: method, path, Authorization, body of each request."""

    seen: list[tuple[str, str, str, bytes]] = field(default_factory=list)
    upgrades: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def backend() -> Iterator[Backend]:
    noted = Backend()

    class Handler(BaseHTTPRequestHandler):
        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            noted.seen.append((self.command, self.path, self.headers.get("Authorization", ""), body))
            noted.upgrades.append(self.headers.get("Upgrade", ""))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    noted.address = f"127.0.0.1:{server.server_address[1]}"
    yield noted
    server.shutdown()
    server.server_close()


@pytest.fixture
def gateway(backend: Backend, opened: Callable[..., LocalGateway]) -> LocalGateway:
    return opened(backend.address, engine_key=ENGINE_KEY)


def test_what_is_not_listed_is_not_there(gateway: LocalGateway, backend: Backend) -> None:
    """Guards that routes and methods nobody has listed get 404 from the gateway and never reach the engine."""
    for call in REFUSED:
        method, _, path = call.partition(" ")
        code, said = ask_with_curl(
            gateway, path, *WITH_KEY, "-X", method, "-d", '{"lora_name": "x", "lora_path": "/x"}'
        )
        assert (code, json.loads(said)["error"]["code"], backend.seen) == (404, "unknown_url", []), call


@pytest.mark.full
def test_odd_spellings_do_not_get_past_the_list(gateway: LocalGateway, backend: Backend) -> None:
    """Guards that what is compared is what the engine would be sent: nothing is decoded, cleaned or folded."""
    for path in SPELLINGS:
        code, said = ask_with_curl(gateway, path, *WITH_KEY, "-X", "POST", "-d", "{}")
        assert (code, json.loads(said)["error"]["code"], backend.seen) == (404, "unknown_url", []), path


@pytest.mark.full
def test_every_listed_route_reaches_the_engine_as_written(gateway: LocalGateway, backend: Backend) -> None:
    """Guards that the list closes nothing which it names, query included, for each engine."""
    for engine in ENGINES:
        gateway.routes = routes(engine).calls
        gateway.write()
        for call in gateway.routes:
            method, _, path = call.replace("{id}", "resp_1-a.b").replace("{path}", "org/tiny%2Fx").partition(" ")
            assert ask_with_curl(gateway, f"{path}?a=/v1/../x", *WITH_KEY, "-X", method)[0] == 200, (engine, call)
            assert backend.seen[-1][:3] == (method, f"{path}?a=/v1/../x", f"Bearer {ENGINE_KEY}")
        assert ask_with_curl(gateway, "/v1/models", *WITH_KEY, "-I")[0] == 200, "HEAD is a GET"


def test_a_recipe_may_open_one_more_route_while_it_serves(gateway: LocalGateway, backend: Backend) -> None:
    """Guards the opt-in, and that a running key check takes over what `up` has written again."""
    call = ("/v1/load_lora_adapter", *WITH_KEY, "-X", "POST", "-d", "{}")
    assert ask_with_curl(gateway, *call)[0] == 404
    gateway.routes = (*gateway.routes, "POST /v1/load_lora_adapter")
    gateway.write()
    assert ask_with_curl(gateway, *call)[0] == 200
    assert ask_with_curl(gateway, "/v1/unload_lora_adapter", *WITH_KEY, "-X", "POST")[0] == 404


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/load_lora_adapter"])
def test_a_preflight_is_answered_by_the_gateway(gateway: LocalGateway, backend: Backend, path: str) -> None:
    """Guards that without a key nothing reaches the engine, neither a body nor its key, and browsers may still ask."""
    asked = ["-X", "OPTIONS", "-H", "Origin: http://x", "-H", "Access-Control-Request-Method: POST"]
    asked += ["--http1.1", "-H", "Access-Control-Request-Headers: authorization,x-stainless-os", "-d", "x" * 1000, "-i"]
    code, said = ask_with_curl(gateway, path, *asked)
    assert (code, backend.seen) == (204, [])
    headers = dict(line.lower().split(": ", 1) for line in said.splitlines() if ": " in line)
    assert headers["access-control-allow-origin"] == "*"
    assert "post" in headers["access-control-allow-methods"]
    assert headers["access-control-allow-headers"] == "authorization,x-stainless-os"
    assert (
        openai_error(gateway.get("/v1/models", key=""))
        and gateway.get("/v1/models", key="").headers["Access-Control-Allow-Origin"] == "*"
    ), "a page may read why it was refused"


def _upgrade(gateway: LocalGateway, path: str, key: str = KEY) -> None:
    """A websocket's opening, to the end of the answer."""
    text = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade, close\r\n"
    text += "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"
    with (
        socket.create_connection(("127.0.0.1", gateway.port), 10) as plain,
        _tls(gateway).wrap_socket(plain, server_hostname="localhost") as link,
    ):
        link.sendall(text.encode())
        link.settimeout(60)
        while link.recv(4096):
            pass


def _tls(gateway: LocalGateway) -> ssl.SSLContext:
    context = gateway.trusted
    context.set_alpn_protocols(["http/1.1"])
    return context


def test_only_listed_paths_become_websockets(gateway: LocalGateway, backend: Backend) -> None:
    """Guards that a client cannot turn any other call into a connection of its own, and needs a key for those."""
    _upgrade(gateway, "/v1/models")
    _upgrade(gateway, "/v1/realtime")
    assert [(call[1], upgrade) for call, upgrade in zip(backend.seen, backend.upgrades, strict=True)] == [
        ("/v1/models", ""),
        ("/v1/realtime", "websocket"),
    ]
    _upgrade(gateway, "/v1/realtime", key="x")
    _upgrade(gateway, "/v1/Realtime")
    assert len(backend.seen) == 2
