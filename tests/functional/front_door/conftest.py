"""Fixtures: a front door before a real twin; whatever a test leaves is ended."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.front_door.doors import ENGINE_KEY, KEY, Door, has_caddy
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, Twin

Opened = Callable[..., Door]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    """A twin with a key of its own that takes 20 ms a token."""
    folder = tmp_path_factory.mktemp("engine")
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", folder / "config.json")
    port = free_port()
    words = ["serve", str(folder), "--served-model-name", "tiny", "--load-format", "dummy", "--host", HEAD_ADDRESS]
    pace = {"SPARKWRIGHT_TWIN_TOKEN_SCALE": "1", "SPARKWRIGHT_TWIN_STEP_MS": "20", "VLLM_API_KEY": ENGINE_KEY}
    twin = Twin([*words, "--port", str(port)], folder / "log", pace, port).start().ready()
    yield twin
    twin.end()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """opened(engine address, ...) -> Door with one key, everything running."""
    if not has_caddy():
        pytest.skip("caddy is not installed")
    doors: list[Door] = []

    def make(engine: str, **how: object) -> Door:
        door = Door(tmp_path / f"home-{len(doors)}", engine, **how)  # type: ignore[arg-type]
        doors.append(door)
        door.home.mkdir()
        door.keys(KEY)
        return door.start()

    yield make
    for door in doors:
        door.end()


@pytest.fixture
def door(engine: Twin, opened: Opened) -> Door:
    return opened(f"{HEAD_ADDRESS}:{engine.port}", engine_key=ENGINE_KEY)
