"""A simulator that calls tools behind a real gateway with TLS, and a home for `connect` to write in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.command import UserShell
from functional.gateway.gateways import ENGINE_KEY, KEY, LocalGateway, has_caddy
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess
from patience import CALL
from sparkwright.gateway.caddy import root_certificate

NPM = Path(__file__).parents[3] / "build" / "npm" / "node_modules"
TOOLS = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]


@dataclass
class ConnectSetup:
    """url: of a gateway, with /v1. key_file, authority: as a user has them. home: where `~` is for all programs."""

    url: str
    home: Path
    key_file: Path
    authority: Path
    shell: UserShell = field(init=False)

    def __post_init__(self) -> None:
        self.shell = UserShell(self.home)

    def connect(self, client: str, *words: str) -> tuple[int, str, str]:
        trust = ("--key-file", str(self.key_file), "--ca", str(self.authority))
        return self.shell.run("connect", client, self.url, *trust, *words)

    def program(self, exports: str, *argv: str, stdin: str = "", folder: Path | None = None) -> str:
        """The output of a program that a shell with these exports starts."""
        script = f'{exports}\nexec "$@"'
        keep = {"PATH": os.environ["PATH"], "HOME": str(self.home), "IS_SANDBOX": "1", "PYTHONWARNINGS": "ignore"}
        words = ["bash", "-c", script, "bash", *argv]
        where = {"cwd": folder or self.home, "env": keep, "input": stdin, "timeout": CALL}
        done = subprocess.run(words, capture_output=True, text=True, check=False, **where)  # type: ignore[call-overload]
        assert done.returncode == 0, f"{argv[0]}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return str(done.stdout)

    def python(self, exports: str, code: str) -> str:
        return self.program(exports, sys.executable, "-c", code)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    folder = tmp_path_factory.mktemp("engine")
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", folder / "config.json")
    port = free_port()
    words = ["serve", str(folder), "--served-model-name", "tiny", "--load-format", "dummy", "--host", HEAD_ADDRESS]
    words += ["--max-model-len", "131072", *TOOLS, "--port", str(port)]
    simulator = SimulatorProcess(words, folder / "log", {"VLLM_API_KEY": ENGINE_KEY}, port).start().ready()
    yield simulator
    simulator.end()


@pytest.fixture(scope="module")
def connect_setup(engine: SimulatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectSetup]:
    if not has_caddy():
        pytest.skip("caddy is not installed")
    folder = tmp_path_factory.mktemp("connect")
    gateway = LocalGateway(folder / "door", f"{HEAD_ADDRESS}:{engine.port}", engine_key=ENGINE_KEY)
    gateway.home.mkdir()
    gateway.keys(KEY)
    gateway.start()
    home = folder / "home"
    home.mkdir()
    (home / "the key").write_text(KEY + "\n")
    yield ConnectSetup(f"{gateway.url}/v1", home, home / "the key", Path(root_certificate(str(gateway.home / "ca"))))
    gateway.end()


@pytest.fixture
def node_modules() -> Path:
    if not (NPM / ".bin" / "claude").exists() or shutil.which("node") is None:
        pytest.skip("data: build/npm is not there; `make npm` fills it")
    return NPM
