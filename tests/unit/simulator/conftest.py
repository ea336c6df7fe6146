"""Fixtures: ranks and clients of a simulator in this process, at full speed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sparkwright.simulator import model, options
from sparkwright.simulator.link import Head
from sparkwright.simulator.rank import Rank, rank_from
from sparkwright.simulator.service import Service
from sparkwright.simulator.settings import Faults, settings_from
from unit.simulator.inprocess import CAPTURES, FLAGS, Client, MakeClient, MakeRank


@pytest.fixture(scope="session")
def captures() -> Path:
    return CAPTURES


@pytest.fixture
def make_rank(tmp_path: Path) -> MakeRank:
    def make(*flags: str, config: str = "tiny-qwen3", env: dict[str, str] | None = None) -> Rank:
        folder = tmp_path / config
        folder.mkdir(exist_ok=True)
        shutil.copy(CAPTURES / f"{config}.config.json", folder / "config.json")
        args = options.parse([str(folder), *FLAGS, *flags])
        settings = settings_from({"SPARKWRIGHT_TWIN_TIME_SCALE": "0", **(env or {})})
        shape = model.read(folder, str(folder), settings.weights_gib)
        return rank_from(args, shape, settings, Faults(settings.fault, settings.control, args.node_rank))

    return make


@pytest.fixture
async def make_client(make_rank: MakeRank) -> AsyncIterator[MakeClient]:
    running: list[asyncio.Task[None]] = []

    async def make(*flags: str, **more: Any) -> Client:
        service = Service(make_rank(*flags, **more), Head(1), asyncio.get_running_loop().create_future())
        running.append(asyncio.create_task(service.engine.run()))
        return Client(service)

    yield make
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
