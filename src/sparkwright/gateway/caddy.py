"""Caddy's configuration, as its own JSON.

Every request to /v1/* goes to our own process on a unix socket, which checks its key and passes it on to the engine of
its model, or answers what the client is to get instead (docs/adr/0014). A browser's preflight (CORS) has no key: it is
answered here and goes no further. Paths of sockets are relative to the folder that Caddy and that process run in: a
socket's path may have no more than 107 bytes.

Caddy's documentation of each part: https://caddyserver.com/docs/json/
"""

import base64
import hashlib
import re
from typing import Any

from sparkwright.domain.recipe import GatewayTls
from sparkwright.domain.values import dataclass
from sparkwright.gateway.decide import CONSOLE_AWAY, GATEWAY_BROKEN, NO_SUCH_PATH, GatewayAnswer

ADMIN = "admin.sock"
SERVICE = "service.sock"
CONSOLE, CONSOLE_PATH = "console.sock", "/console"
FLIGHTS = "/flights"
"""Of our process, for the supervisors: requests that each engine has now."""
_CERTIFICATE = "door"
_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
_HEADER_LIMIT = 64 * 1024
_CONSOLE_LIMIT = 256 * 1024
# What a client is given to send its headers in, and how long its connection may rest: never how long an answer lasts.
_HEADERS_WITHIN, _REST = "10s", "5m"


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """One port of a head node. addresses: to listen on, '' for all. names: host names and addresses in the certificate.

    store: folder of Caddy's own CA, kept for good. certificate, key: files on the head (GatewayTls.FILES).
    """

    addresses: tuple[str, ...]
    port: int
    store: str
    tls: GatewayTls = GatewayTls.INTERNAL
    names: tuple[str, ...] = ()
    certificate: str = ""
    key: str = ""

    @property
    def open_to(self) -> str:
        """The settings that deployments behind one gateway have to agree on, as text."""
        files = f" {self.certificate} {self.key}" if self.tls is GatewayTls.FILES else ""
        return f"{', '.join(at or 'all addresses' for at in self.addresses)}, tls {self.tls}{files}"


def config(gateway: GatewayConfig) -> dict[str, Any]:
    apps: dict[str, Any] = {"http": {"servers": {"door": _server(gateway)}, "grace_period": 0}}
    if gateway.tls is not GatewayTls.OFF:
        local = {"name": "Sparkwright gateway", "install_trust": False}
        apps |= {"tls": _tls(gateway), "pki": {"certificate_authorities": {"local": local}}}
    return {
        "admin": {"listen": f"unix/{ADMIN}", "config": {"persist": False}},
        "logging": {"logs": {"default": {"level": "ERROR", "exclude": ["http.log.error", "http.log.access"]}}},
        "storage": {"module": "file_system", "root": gateway.store},
        "apps": apps,
    }


def _server(gateway: GatewayConfig) -> dict[str, Any]:
    encrypted = gateway.tls is not GatewayTls.OFF
    # May a page of another origin ask? Who has a key may, from wherever: what is answered is the engine's affair.
    asks = {"method": ["OPTIONS"], "path": ["/v1/*"], "header": {"Access-Control-Request-Method": ["*"]}}
    headers = {
        "Access-Control-Allow-Origin": ["*"],
        "Access-Control-Allow-Methods": ["GET, POST, PUT, PATCH, DELETE"],
        "Access-Control-Allow-Headers": ["{http.request.header.Access-Control-Request-Headers}"],
        "Access-Control-Max-Age": ["600"],
        "Vary": ["Access-Control-Request-Headers"],
    }
    server: dict[str, Any] = {
        "listen": [f"[{at}]:{gateway.port}" if ":" in at else f"{at}:{gateway.port}" for at in gateway.addresses],
        "protocols": ["h1", "h2"] if encrypted else ["h1"],
        "read_header_timeout": _HEADERS_WITHIN,
        "idle_timeout": _REST,
        "max_header_bytes": _HEADER_LIMIT,
        "automatic_https": {"disable": True},
        "routes": [
            {"match": [asks], "handle": [{"handler": "static_response", "status_code": 204, "headers": headers}]}
            | {"terminal": True},
            {"match": [{"path": ["/v1/*"]}], "handle": [_passed()]},
            {"match": [{"path": [CONSOLE_PATH, f"{CONSOLE_PATH}/*"]}], "handle": _console()},
            {"handle": [_fixed(NO_SUCH_PATH)]},
        ],
        "errors": {"routes": _errors()},
    }
    chosen: dict[str, Any] = {"default_sni": gateway.names[0]} if gateway.names else {}
    if gateway.tls is GatewayTls.FILES:
        chosen["certificate_selection"] = {"any_tag": [_CERTIFICATE]}
    return server | ({"tls_connection_policies": [chosen]} if encrypted else {})


def _passed() -> dict[str, Any]:
    """Passed on as it is; the answer flows back byte by byte.

    No flush_interval: Caddy passes on at once what has no length. With -1, Debian's 2.6.2 does not close the engine's
    connection of a client that has left, and cuts every stream at a reload (docs/adr/0009).
    """
    # Our process closes each connection: it is the end of its answer.
    transport = {"protocol": "http", "compression": False, "dial_timeout": "3s", "keep_alive": {"enabled": False}}
    return {"handler": "reverse_proxy", "upstreams": [{"dial": f"unix/{SERVICE}"}], "transport": transport}


def _console() -> list[dict[str, Any]]:
    """A process of its own, which answers whatever else is away."""
    console = {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"unix/{CONSOLE}"}],
        "transport": {"protocol": "http", "keep_alive": {"enabled": False}},
    }
    return [
        {"handler": "vars", "stage": "console"},
        {"handler": "request_body", "max_size": _CONSOLE_LIMIT},
        {"handler": "headers", "request": {"delete": ["Upgrade", "Sec-Websocket-*"]}},
        console,
    ]


def _errors() -> list[dict[str, Any]]:
    """Our process is away, or went away; or the console's."""
    away = {"match": [{"vars": {"stage": ["console"]}}], "handle": [_fixed(CONSOLE_AWAY)]}
    return [away | {"terminal": True}, {"handle": [_fixed(GATEWAY_BROKEN)]}]


def _fixed(answer: GatewayAnswer) -> dict[str, Any]:
    headers = {name: [value] for name, value in answer.headers.items()}
    return {"handler": "static_response", "status_code": answer.status, "headers": headers, "body": answer.body}


def _tls(gateway: GatewayConfig) -> dict[str, Any]:
    quiet = {"disable_ocsp_stapling": True}
    if gateway.tls is GatewayTls.FILES:
        pair = {"certificate": gateway.certificate, "key": gateway.key, "tags": [_CERTIFICATE]}
        return quiet | {"certificates": {"load_files": [pair]}}
    policy = {"subjects": list(gateway.names), "issuers": [{"module": "internal"}]}
    return quiet | {"certificates": {"automate": list(gateway.names)}, "automation": {"policies": [policy]}}


def root_certificate(store: str) -> str:
    """The path of the root certificate that clients have to trust."""
    return f"{store}/pki/authorities/local/root.crt"


def given_root(text: str) -> tuple[str, bool]:
    """Certificate that clients were given, '' if none was, and whether the CA on the head is still that one.

    text: as remote.gateway.trust prints it.
    """
    root, other, _ = text.partition("\nother\n")
    return root.strip() and f"{root.strip()}\n", not other


def fingerprint(certificate: str) -> str:
    """SHA-256 of a PEM certificate in hexadecimal, as `openssl x509 -fingerprint` shows it without colons."""
    body = "".join(line for line in certificate.split() if _BASE64.fullmatch(line))
    try:
        return hashlib.sha256(base64.b64decode(body, validate=True)).hexdigest()
    except ValueError:
        return hashlib.sha256(certificate.encode()).hexdigest()


def certificate_folders(front: GatewayConfig) -> tuple[str, ...]:
    """Folders below `store` of the certificate of each name."""
    names = (name.lower().replace(":", "-") for name in front.names) if front.tls is GatewayTls.INTERNAL else ()
    return tuple(f"{front.store}/certificates/local/{name}" for name in names)
