"""Fixtures: ranks and clients of a simulator in this process, at full speed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sparkwright.simulator.link import HeadLink
from sparkwright.simulator.rank import SimulatedRank
from sparkwright.simulator.service import SimulatedService
from unit.simulator.inprocess import CAPTURES, InProcessClient, MakeClient, MakeRank, rank_in


@pytest.fixture(scope="session")
def captures() -> Path:
    return CAPTURES


@pytest.fixture
def make_rank(tmp_path: Path) -> MakeRank:
    def make(*flags: str, config: str = "tiny-qwen3", env: dict[str, str] | None = None) -> SimulatedRank:
        return rank_in(tmp_path, *flags, config=config, env=env)

    return make


@pytest.fixture
async def make_client(make_rank: MakeRank) -> AsyncIterator[MakeClient]:
    running: list[asyncio.Task[None]] = []

    async def make(*flags: str, **more: Any) -> InProcessClient:
        service = SimulatedService(make_rank(*flags, **more), HeadLink(1), asyncio.get_running_loop().create_future())
        running.append(asyncio.create_task(service.engine.run()))
        return InProcessClient(service)

    yield make
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
