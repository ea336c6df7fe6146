"""A real gateway on loopback: Caddy and the key check, as `up` starts them, before the engine of a test."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx

from fakes.ports import free_port
from functional.simulator.process import wait_until
from sparkwright.checks.gateway import HIDES
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.engines.tables import routes
from sparkwright.engines.version import within
from sparkwright.gateway.caddy import GatewayConfig, certificate_folders, config, root_certificate
from sparkwright.gateway.keys import FrontSetting, Key, Keys, RouteSetting, digest, text_of

KEY = "sk-sw-" + "1f" * 24
ENGINE_KEY = "the-engines-own-key-7d1"
SERVICE = (
    "import sys, pathlib; from sparkwright.supervisor.proxy.gateway import main; "
    "sys.exit(main(pathlib.Path(sys.argv[1])))"
)
LIMIT = 200_000


@dataclass
class LocalGateway:
    """home: as a supervisor's, next to the gateway's own. engine: `host:port` of what is behind it."""

    home: Path
    engine: str
    port: int = field(default_factory=free_port)
    engine_key: str = ""
    tls: dict[str, Any] = field(default_factory=dict)
    metrics: int = field(default_factory=free_port)
    routes: tuple[str, ...] = routes("simulator").calls
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home.parent / "_gateway" / "door"

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def front(self) -> GatewayConfig:
        names = ("localhost", "127.0.0.1")
        plain = GatewayConfig(("127.0.0.1",), self.port, str(self.home / "ca"), names=names)
        return replace(plain, **self.tls)

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.home / "door").mkdir(exist_ok=True)
        front = FrontSetting(self.port, str(self.home / "keys.json"), self.metrics)
        for certificates in map(Path, certificate_folders(self.front)):  # as `up` does: else Caddy may sweep one away
            certificates.mkdir(parents=True, exist_ok=True)
            (certificates / "keep").touch()
        (self.folder / "gateway.json").write_text(to_json(front))
        (self.home / "door" / "door.json").write_text(to_json(self.route(self.home.name, self.engine, "SOME_KEY")))
        (self.folder / "caddy.json").write_text(json.dumps(config(self.front)))
        (self.home / "secrets.json").write_text(json.dumps({"SOME_KEY": self.engine_key}))

    def add(self, name: str, engine: str) -> None:
        """Another deployment of this head on the same port."""
        folder = self.home.parent / name / "door"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "door.json").write_text(to_json(self.route(name, engine)))
        self._taken_over()

    def route(self, name: str, engine: str, key_env: str = "") -> RouteSetting:
        sockets = routes("simulator").websockets
        return RouteSetting(name, engine, LIMIT, self.port, self.metrics, key_env, (name,), self.routes, sockets)

    def without(self, name: str) -> None:
        shutil.rmtree(self.home.parent / name)
        self._taken_over()

    def keys_for(self, deployment: str) -> None:
        """The one key opens this deployment only."""
        (self.home / "keys.new").write_text(text_of(Keys((Key("key-0", digest(KEY), deployment=deployment),))))
        (self.home / "keys.new").replace(self.home / "keys.json")

    def _taken_over(self) -> None:
        there = sum((one / "door" / "door.json").exists() for one in self.home.parent.iterdir())
        wait_until("the gateway knows what is there", lambda: len(self.flights()) == there)

    def flights(self) -> dict[str, dict[str, Any]]:
        """The flights shown to the supervisors of each deployment."""
        transport = httpx.HTTPTransport(uds=str(self.folder / "service.sock"))
        with httpx.Client(transport=transport, timeout=60.0) as client:
            return dict(client.get("http://gateway/flights").json())

    def keys(self, *known: str) -> None:
        """Puts keys in place at once, as `sparkwright keys` does."""
        keys = Keys(tuple(Key(f"key-{n}", digest(one)) for n, one in enumerate(known)))
        (self.home / "keys.new").write_text(text_of(keys))
        (self.home / "keys.new").replace(self.home / "keys.json")

    def live(self, **what: Any) -> None:
        """Writes live.json as the supervisor does."""
        now = time.time()
        live = replace(Live(now, "tiny", DeploymentState.READY, now), **what)
        (self.home / "live.new").write_text(to_json(live))
        (self.home / "live.new").replace(self.home / "live.json")

    def start(self) -> LocalGateway:
        self.write()
        self.start_service()
        self.start_caddy()
        return self

    def start_service(self) -> None:
        self._run("service", [sys.executable, "-c", SERVICE, str(self.folder.parent)])
        wait_until(lambda: f"the key check listens: {self.log('service')}", self._serves)

    def start_caddy(self) -> None:
        self._run("caddy", ["caddy", "run", "--config", "caddy.json"])
        wait_until(lambda: f"Caddy listens: {self.log('caddy')}", self._listens)

    def _run(self, name: str, argv: list[str]) -> None:
        environ = {**os.environ, "HOME": str(self.home)}
        with (self.home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(argv, cwd=self.folder, stdout=log, stderr=log, env=environ)

    def _listens(self) -> bool:
        try:
            return self.get("/", key="").status_code == 404
        except (httpx.TransportError, ssl.SSLError):  # its CA is being made
            assert self.processes["caddy"].poll() is None, self.log("caddy")
            return False

    def _serves(self) -> bool:
        folder = os.open(self.folder, os.O_PATH)  # a socket's own path may have no more than 107 bytes
        with socket.socket(socket.AF_UNIX) as link:
            failed = link.connect_ex(f"/proc/self/fd/{folder}/service.sock")
        os.close(folder)
        assert self.processes["service"].poll() is None, self.log("service")
        return not failed

    def log(self, name: str) -> str:
        path = self.home / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def reload(self) -> None:
        """Reloads a changed configuration as `up` does."""
        argv = ["caddy", "reload", "--config", "caddy.json", "--address", "unix/admin.sock"]
        done = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def end(self, *names: str) -> None:
        for name in names or tuple(self.processes):
            self.processes[name].kill()
            self.processes[name].wait()

    @property
    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=root_certificate(str(self.home / "ca")))

    def client(self, key: str = KEY, timeout: float | httpx.Timeout = 60.0) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, verify=self.trusted, headers=headers, timeout=timeout)

    def get(self, path: str, key: str = KEY, **headers: str) -> httpx.Response:
        if not Path(root_certificate(str(self.home / "ca"))).exists():
            raise httpx.ConnectError("no CA yet")
        with self.client(key) as client:
            return client.get(path, headers=headers)

    def post(self, path: str, body: dict[str, Any], key: str = KEY, timeout: float = 60.0) -> httpx.Response:
        with self.client(key, timeout) as client:
            return client.post(path, json=body)


def has_caddy() -> bool:
    return shutil.which("caddy") is not None


@lru_cache
def hides_cut_streams() -> bool:
    """True if the installed Caddy is one that rule DOOR002 warns of."""
    return has_caddy() and within("caddy", subprocess.check_output(["caddy", "version"], text=True), HIDES)
