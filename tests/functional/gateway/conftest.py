"""Fixtures: a gateway before a real simulator; whatever a test leaves is ended."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.gateway.gateways import ENGINE_KEY, KEY, LocalGateway, has_caddy
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess

Opened = Callable[..., LocalGateway]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    """A simulator with a key of its own that takes 20 ms a token."""
    folder = tmp_path_factory.mktemp("engine")
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", folder / "config.json")
    port = free_port()
    words = ["serve", str(folder), "--served-model-name", "tiny", "--load-format", "dummy", "--host", HEAD_ADDRESS]
    pace = {"SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1", "SPARKWRIGHT_SIMULATOR_STEP_MS": "20", "VLLM_API_KEY": ENGINE_KEY}
    simulator = SimulatorProcess([*words, "--port", str(port)], folder / "log", pace, port).start().ready()
    yield simulator
    simulator.end()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """opened(engine address, ...) -> Gateway with one key, everything running."""
    if not has_caddy():
        pytest.skip("caddy is not installed")
    gateways: list[LocalGateway] = []

    def make(engine: str, **how: object) -> LocalGateway:
        gateway = LocalGateway(tmp_path / f"{len(gateways)}" / "tiny", engine, **how)  # type: ignore[arg-type]
        gateways.append(gateway)
        gateway.home.mkdir(parents=True)
        gateway.keys(KEY)
        return gateway.start()

    yield make
    for gateway in gateways:
        gateway.end()


@pytest.fixture
def gateway(engine: SimulatorProcess, opened: Opened) -> LocalGateway:
    return opened(f"{HEAD_ADDRESS}:{engine.port}", engine_key=ENGINE_KEY)
