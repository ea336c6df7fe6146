"""The demo's words about the clients while a rank is killed."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkwright.cli.demo_story import DemoClient
from sparkwright.domain.command import Secret
from sparkwright.domain.probed import Reply


class DemoClock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def client(replies: Iterator[Reply], key: Secret | None) -> DemoClient:
    async def post(*_: object) -> Reply:
        return next(replies)

    return DemoClient(
        cast(Any, SimpleNamespace(clock=DemoClock(), endpoint=SimpleNamespace(post=post))), "http://h", "m", key
    )


@pytest.mark.parametrize(("key", "refused"), [(None, [0]), (Secret("k"), [])])
async def test_only_a_gateway_holds_a_request(key: Secret | None, refused: list[int]) -> None:
    """A slow answer without a gateway is the engine's last, and no recovery."""
    slow = Reply(200, seconds=2.0)
    replies = iter([Reply(200, seconds=0.1), slow, slow, Reply(0), *[Reply(200, seconds=0.1)] * 9])
    told: list[int] = []
    outage = await client(replies, key).through(lambda: None, lambda reply, _: told.append(reply.status))
    assert [reply.status for reply in outage.refused] == refused
    assert told == (refused or [200])
