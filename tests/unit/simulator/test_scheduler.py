"""The engine batches, queues, preempts and shares like vLLM's, on a pool that never lies about its blocks."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from sparkwright.simulator.job import BlockPool, BlockTable
from unit.simulator.inprocess import InProcessClient, MakeClient, wait_until

BODY = {"prompt": "word " * 30, "max_tokens": 50, "ignore_eos": True}


def pool_of(blocks: int, caching: bool = True) -> BlockPool:
    return BlockPool(blocks, 4, caching)


def take_blocks(pool: BlockPool, tokens: list[int], room: int) -> BlockTable | None:
    table = BlockTable()
    hashes = pool.hashes(tokens)
    pool.match(table, hashes, len(tokens))
    if not pool.grow(table, room):
        pool.release(table)
        return None
    pool.name(table, hashes[len(table.named) :])
    return table


def test_a_prefix_is_found_in_whole_blocks_and_never_whole() -> None:
    """Equal tokens share full blocks, and at least one token is always computed."""
    pool = pool_of(100)
    tokens = list(range(12))
    take_blocks(pool, tokens, 12)
    for prompt, found in ((tokens, 8), ([*tokens, 1], 12), (tokens[:5], 4), ([9, *tokens], 0)):
        assert pool.match(BlockTable(), pool.hashes(prompt), len(prompt)) == found


def test_shared_blocks_count_once() -> None:
    """Two requests with one prefix use it together."""
    pool = pool_of(100)
    tokens = list(range(16))
    take_blocks(pool, tokens, 17)
    assert pool.used == 5
    take_blocks(pool, [*tokens, 1], 18)
    assert pool.used == 6


def test_freed_blocks_stay_cached_until_room_is_needed() -> None:
    """A finished request's prefix is found again; a full pool evicts the oldest first, tails before heads."""
    pool = pool_of(8)
    old, new = list(range(16)), list(range(100, 116))
    for tokens in (old, new):
        table = take_blocks(pool, tokens, 16)
        assert table is not None
        pool.release(table)
    assert pool.used == 0
    assert take_blocks(pool, list(range(200, 212)), 12) is not None
    assert [pool.match(BlockTable(), pool.hashes(t), 17) for t in (old, new)] == [4, 16]


def test_a_full_pool_refuses_and_changes_nothing() -> None:
    """More than there is cannot be had, and the attempt takes nothing."""
    pool = pool_of(4)
    assert take_blocks(pool, list(range(12)), 12) is not None
    assert take_blocks(pool, list(range(50, 60)), 10) is None
    assert pool.used == 3 and pool.usage == 0.75


def test_without_caching_nothing_is_shared() -> None:
    """--no-enable-prefix-caching: equal prompts pay twice."""
    pool = pool_of(100, caching=False)
    tokens = list(range(16))
    take_blocks(pool, tokens, 16)
    take_blocks(pool, tokens, 16)
    assert pool.used == 8


async def run_together(client: InProcessClient, count: int) -> tuple[list[int], int]:
    """Tokens of `count` simultaneous requests, and the steps they took."""
    steps = itertools.count()
    seen = [0]

    class Counting:
        async def step(self, answered: int, seconds: float) -> None:
            seen[0] = next(steps) + 1

    client.service.engine.ranks = Counting()
    bodies = [{**BODY, "prompt": f"{i} " * 30} for i in range(count)]
    replies = await asyncio.gather(*(client.post("/v1/completions", b) for b in bodies))
    return [r.json["usage"]["completion_tokens"] for r in replies], seen[0]


async def test_requests_share_steps(make_client: MakeClient) -> None:
    """Eight requests of 50 tokens take about as many steps as one."""
    tokens, steps = await run_together(await make_client(), 8)
    assert tokens == [50] * 8
    assert steps < 60


async def test_requests_beyond_the_limit_wait(make_client: MakeClient) -> None:
    """--max-num-seqs 2 makes eight requests go through in four turns."""
    tokens, steps = await run_together(await make_client("--max-num-seqs", "2"), 8)
    assert tokens == [50] * 8
    assert steps >= 4 * 50


async def test_long_prompts_are_cut_into_chunks(make_client: MakeClient) -> None:
    """A prompt of 3,000 tokens takes six steps of 512 before its first token."""
    client = await make_client("--max-num-batched-tokens", "512")
    seen = itertools.count()
    client.service.engine.ranks = _Stepper(seen)
    await client.post("/v1/completions", {"prompt": list(range(3000)), "max_tokens": 1})
    assert next(seen) == 6


class _Stepper:
    def __init__(self, steps: itertools.count[int]) -> None:
        self.steps = steps

    async def step(self, answered: int, seconds: float) -> None:
        next(self.steps)


async def test_a_full_pool_preempts_and_still_answers_all(make_client: MakeClient) -> None:
    """The newest request starts again if running ones outgrow the pool: counted, and nobody loses a token."""
    client = await make_client("--max-model-len", "128", "--no-enable-prefix-caching")
    client.service.engine.machine.pool.total = 12
    tokens, _ = await run_together(client, 4)
    assert tokens == [50] * 4
    assert client.service.metrics.get("vllm:num_preemptions_total") > 0
    assert client.service.engine.machine.pool.used == 0


async def test_gauges_show_what_runs_and_waits(make_client: MakeClient) -> None:
    """The gauges show two of five running, three waiting, and the pool in use; afterwards all is free."""
    client = await make_client("--max-num-seqs", "2")
    gate = asyncio.Event()

    class Taken:
        steps = 0

        async def step(self, answered: int, seconds: float) -> None:
            self.steps += 1
            if self.steps > 1:
                await gate.wait()

    client.service.engine.ranks = Taken()
    jobs = [asyncio.create_task(client.post("/v1/completions", BODY)) for _ in range(5)]
    await wait_until(lambda: client.service.engine.ranks.steps > 1)
    busy = (await client.get("/metrics")).text
    gate.set()
    await asyncio.gather(*jobs)
    idle = (await client.get("/metrics")).text
    labels = '{engine="0",model_name="tiny-qwen3"}'
    assert f"vllm:num_requests_running{labels} 2.0" in busy and f"vllm:num_requests_waiting{labels} 3.0" in busy
    assert f"vllm:kv_cache_usage_perc{labels} 0.0\n" not in busy
    assert f"vllm:num_requests_running{labels} 0.0" in idle and f"vllm:kv_cache_usage_perc{labels} 0.0\n" in idle


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_frees_its_blocks(make_client: MakeClient, stream: bool) -> None:
    """An abandoned request is aborted and counted, not computed to its end."""
    client = await make_client(env={"SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1", "SPARKWRIGHT_SIMULATOR_STEP_MS": "5"})
    engine = client.service.engine
    body = {**BODY, "max_tokens": 20_000, "stream": stream}
    reply = await client.post("/v1/completions", body, leave_after=0.05)
    assert reply.status in (0, 200)
    await wait_until(lambda: client.service.metrics.get("vllm:request_success_total", finished_reason="abort") == 1)
    assert engine.running == [] and engine.machine.pool.used == 0
