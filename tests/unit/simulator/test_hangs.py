"""A simulator that hangs shows what a real engine shows then: figures that stall, a device that spins or rests."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from sparkwright.simulator import rank
from sparkwright.simulator.rank import RankActivity
from unit.simulator.inprocess import InProcessClient, MakeClient, wait_until

BODY = {"prompt": "word " * 30, "max_tokens": 20, "ignore_eos": True}
SLOW = {"SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1", "SPARKWRIGHT_SIMULATOR_STEP_MS": "5"}


def shown_states(rank: int) -> list[str]:
    """States that a rank in this process shows to readers of /proc/net/unix."""
    names = [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if "@sparkwright-tw" in line]
    return [name.split("/")[1] for name in names if name.split("/")[2] == f"{os.getpid()}-{rank}"]


def gauges(client: InProcessClient) -> tuple[float, ...]:
    client.service.metrics.refresh()
    names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prompt_tokens_total")
    return tuple(client.service.metrics.get(f"vllm:{name}") for name in names)


async def given_up(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_engine_that_hangs_from_idle_reports_that_nothing_runs(make_client: MakeClient) -> None:
    """vLLM's gauges come with the results of a step: of a step that never ends they report nothing."""
    client = await make_client(env={"SPARKWRIGHT_SIMULATOR_FAULT": "freeze_after=0"})
    hanging = asyncio.create_task(client.post("/v1/completions", BODY))
    leaving = asyncio.create_task(client.post("/v1/completions", BODY, leave_after=0.01))
    await wait_until(lambda: client.service.engine.running)
    await asyncio.wait({leaving})
    assert gauges(client) == (0, 0, 0, 0)
    assert client.service.metrics.get("vllm:request_success_total", finished_reason="abort") == 0
    await given_up(hanging)


async def test_a_chunked_prefill_moves_only_the_pool(make_client: MakeClient) -> None:
    """The share of the pool grows between two chunks; tokens and iterations are counted with the first token."""
    client = await make_client(
        "--max-num-batched-tokens", "256", env={"SPARKWRIGHT_SIMULATOR_PREFILL_TPS": "20000", **SLOW}
    )
    work = asyncio.create_task(client.post("/v1/completions", {"prompt": list(range(4000)), "max_tokens": 1}))
    seen = []
    while not work.done():
        seen.append(gauges(client))
        await asyncio.sleep(0.005)
    usage = [pool for running, _, pool, prompt in seen if running and not prompt]
    assert usage == sorted(usage) and len(set(usage)) > 5
    assert {prompt for *_, prompt in seen} <= {0, 4000} and gauges(client)[3] == 4000
    count = client.service.metrics.families["vllm:iteration_tokens_total"].at({})
    assert (sum(count.counts), count.total) == (1, 4001)


def test_a_mark_is_there_while_its_state_lasts() -> None:
    """One name at a time, none at rest: a shim that reads them knows what the device does."""
    one, seen = RankActivity(77), []
    for state in ("work", "spin", "spin", ""):
        one.show(state)
        seen.append(shown_states(77))
    assert seen == [["work"], ["spin"], ["spin"], []]


async def test_the_device_works_and_rests(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It works while tokens are made and rests soon after."""
    monkeypatch.setattr(rank, "REST_S", 0.05)
    client = await make_client(env=SLOW)
    work = asyncio.create_task(client.post("/v1/completions", BODY))
    await wait_until(lambda: client.service.core.activity.state == "work")
    await work
    await wait_until(lambda: client.service.core.activity.state == "")


async def test_a_deadlock_spins(make_client: MakeClient) -> None:
    """`spin_after`: the request hangs and the device is busy for nothing."""
    client = await make_client(env={"SPARKWRIGHT_SIMULATOR_FAULT": "spin_after=0"})
    hanging = asyncio.create_task(client.post("/v1/completions", BODY))
    await wait_until(lambda: client.service.core.activity.state == "spin")
    assert not hanging.done()
    await given_up(hanging)


async def test_waiting_for_a_silent_rank_spins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collective that does not end keeps the device busy; once it has ended the device works, then rests."""
    monkeypatch.setattr(rank, "SPIN_S", 0.02)
    monkeypatch.setattr(rank, "REST_S", 0.02)
    one = RankActivity(3)
    one.begin()
    assert one.state == "work"
    await wait_until(lambda: one.state == "spin")
    one.begin()
    one.end(0.05)
    assert one.state == "work"
    await wait_until(lambda: one.state == "")


async def test_a_frozen_web_server_is_silent_while_the_engine_goes_on(make_client: MakeClient, tmp_path: Path) -> None:
    """`freeze_api`: no route answers, tokens are made, and all is delivered once it thaws."""
    control = tmp_path / "control"
    client = await make_client(env={**SLOW, "SPARKWRIGHT_SIMULATOR_CONTROL": str(control)})
    watching = asyncio.create_task(client.service.core.watch())
    work = asyncio.create_task(client.post("/v1/completions", BODY))
    await wait_until(lambda: client.service.engine.running)
    control.write_text("freeze_api")
    client.service.core.rank.faults.refresh()
    health = asyncio.create_task(client.get("/health"))
    await wait_until(lambda: client.service.engine.answered == 1)
    await asyncio.sleep(0.05)
    assert not work.done() and not health.done()
    control.unlink()
    client.service.core.rank.faults.all = ()
    assert (await work).status == 200 and (await health).status == 200
    await given_up(watching)


@pytest.mark.parametrize(
    ("fault", "name"), [("hits=0", "prefix_cache_hits"), ("accept=0", "spec_decode_num_accepted_tokens")]
)
async def test_drifts_show_in_the_counters(make_client: MakeClient, tmp_path: Path, fault: str, name: str) -> None:
    """Hits and accepted drafts stop growing while their share is 0."""
    control = tmp_path / "control"
    flags = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}']
    client = await make_client(*flags, env={"SPARKWRIGHT_SIMULATOR_CONTROL": str(control)})
    counted = []
    for step in range(4):
        if step == 2:
            control.write_text(fault)
            client.service.core.rank.faults.refresh()
        await client.post("/v1/completions", {**BODY, "prompt": "same words again " * 40})
        counted.append(client.service.metrics.get(f"vllm:{name}_total"))
    first, second, third, fourth = counted
    assert second > first and (third, fourth) == (second, second)
