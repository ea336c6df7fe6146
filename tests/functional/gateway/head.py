"""A head node in a folder of this machine, with a plan whose gateway is made ready there."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from fakes.artifacts import FakeArtifacts
from fakes.calibrations import FakeCalibrations
from fakes.endpoint import FakeEndpoint
from fakes.ports import free_port
from fakes.sink import FakeSink
from functional.gateway.gateways import ENGINE_KEY
from functional.simulator.process import HEAD_ADDRESS, wait_until
from sparkwright.adapters.artifacts import FolderKeyring
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.ssh import SshSettings
from sparkwright.app.serve.gateway import GatewayInstall, GatewayReach, install_gateway, settled
from sparkwright.app.services import Services
from sparkwright.domain.cluster import Cluster, Node, NodePaths
from sparkwright.domain.plan import Placement, Plan
from sparkwright.domain.recipe import EngineChoice, Gateway, Model, Recipe, Serving
from sparkwright.domain.service import Installation, Service

# In place of the bundle: this checkout's own source, for a Python that is told to look nowhere else.
PROGRAM = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from sparkwright.supervisor.proxy.gateway import main
sys.exit(main(Path(sys.argv[3])))
"""


def free_pair() -> int:
    """A port whose next one is free, too."""
    while True:
        port = free_port()
        try:
            probe = socket.create_server((HEAD_ADDRESS, port + 1))
        except OSError:
            continue
        probe.close()
        return port


@dataclass
class GatewayHead:
    """engine: `host:port`. path: of programs on the node."""

    folder: Path
    engine_port: int
    path: str = os.environ["PATH"]
    gateway: Gateway = field(default_factory=lambda: Gateway(port=free_pair()))
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        runtime = self.folder / "runtime"
        runtime.mkdir(parents=True)
        (runtime / "__main__.py").write_text(PROGRAM.format(path=sys.path))
        state = self.folder / "state"
        home = state / "supervision" / "tiny"
        home.mkdir(parents=True)
        (home / "secrets.json").write_text(json.dumps({"SOME_KEY": ENGINE_KEY}))
        self.where = Installation("spark-1", str(home), str(state), sys.executable, str(runtime))

    @property
    def cluster(self) -> Cluster:
        node = Node("spark-1", "local", paths=NodePaths(state=self.where.state), env=(("PATH", self.path),))
        return Cluster("desk", (node,), "spark-1")

    @property
    def services(self) -> Services:
        clock = SystemClock()
        return Services(
            cluster=self.cluster,
            hosts=ClusterHosts(self.cluster, SshSettings()),
            endpoint=FakeEndpoint(),
            clock=clock,
            save_evidence=FakeArtifacts().save,
            calibrations=FakeCalibrations(),
            sink=FakeSink(),
            who="ann@desk",
            nonce="1",
            keyring=FolderKeyring(self.folder / "laptop"),
        )

    @property
    def plan(self) -> Plan:
        recipe = Recipe("tiny", "Tiny", Model("org/tiny"), EngineChoice("simulator", "0.21.0"))
        recipe = replace(recipe, serving=Serving(port=self.engine_port, gateway=self.gateway, api_key_env="SOME_KEY"))
        placed = Placement(("spark-1",), {})
        return Plan("tiny", recipe, self.cluster, placed, (), (), (), HEAD_ADDRESS, self.engine_port, "tiny")

    async def up(self) -> tuple[GatewayInstall, tuple[GatewayReach | None, tuple[str, ...]]]:
        """Acts like `up`: programs that are to run are run, and running ones are left alone."""
        furnished = await install_gateway(self.services, self.plan, self.where)
        for service in furnished.services:
            if service.name not in (*self.running, "console"):  # the program here is the gateway's process alone
                self._start(service)
        running, url = "caddy" in self.running, furnished.url
        said = await settled(self.services, self.plan, self.where, url) if running else (None, ())
        return furnished, said

    def _start(self, service: Service) -> None:
        with (self.folder / f"{service.name}.log").open("ab") as log:
            self.running[service.name] = subprocess.Popen(service.argv, cwd=service.cwd, stdout=log, stderr=log)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.gateway.port}"

    @property
    def certificate(self) -> str:
        return str(self.folder / "laptop" / "desk" / "ca.crt")

    def key(self, name: str = "default") -> str:
        return (self.folder / "laptop" / "desk" / f"{name}.key").read_text().strip()

    def status(self, key: str, verify: str = "") -> int:
        headers = {"Authorization": f"Bearer {key}"}
        context = ssl.create_default_context(cafile=verify or self.certificate)
        return httpx.get(f"{self.url}/v1/models", headers=headers, verify=context, timeout=60).status_code

    def figures(self) -> bool:
        try:
            return httpx.get(f"http://{HEAD_ADDRESS}:{self.gateway.port + 1}/metrics").status_code == 200
        except httpx.TransportError:
            return False

    def wait_for_figures(self) -> None:
        wait_until("the key check shows figures", self.figures)

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
