"""Replicas behind the gateway's process: simulators with their own prompt caches, killed and restarted under load."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from drills.routing.scale import conversations
from fakes.ports import free_port
from functional.gateway.gateways import ENGINE_KEY, KEY, LocalGateway
from functional.gateway.test_replicas import CHAT, ScriptedEngine, answer_named
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess
from patience import PATIENCE
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.recipe import Serving
from sparkwright.gateway.keys import RouteSetting

PER_TOKEN = 4096
"""Bytes of KV cache that the simulated model takes for a token: 4 layers, 4 heads of 64, keys and values in 16 bits."""
HITS = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{.*\} ([\d.e+]+)$", re.MULTILINE)


@dataclass
class ReplicaGateway(LocalGateway):
    """The gateway's process without Caddy before replicas `tiny-r1`, ... of `tiny`."""

    def route(self, name: str, engine: str, key_env: str = "") -> RouteSetting:
        return replace(super().route(name, engine, "SOME_KEY"), models=("tiny",), limit=1 << 23, replica_of="tiny")

    def replica(self, number: int) -> ReplicaGateway:
        """The same with the folder of another replica, to write its report."""
        return replace(self, home=self.home.parent / f"tiny-r{number}", processes={})

    def report(self, number: int, phase: DeploymentState, refusing: bool = False) -> None:
        self.replica(number).live(deployment=f"tiny-r{number}", phase=phase, refusing=refusing)

    def clients(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self.folder / "service.sock")),
            base_url="http://gateway",
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=60,
        )


Served = Callable[..., ReplicaGateway]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """served(addresses of engines) -> their gateway, which listens."""
    made: list[ReplicaGateway] = []

    def serve(engines: list[str], engine_key: str = ENGINE_KEY) -> ReplicaGateway:
        gateway = ReplicaGateway(tmp_path / f"g{len(made)}" / "tiny-r1", engines[0], engine_key=engine_key)
        gateway.home.mkdir(parents=True)
        gateway.keys(KEY)
        gateway.write()
        made.append(gateway)
        gateway.start_service()
        for number, engine in enumerate(engines[1:], 2):
            gateway.add(f"tiny-r{number}", engine)
            shutil.copy(gateway.home / "secrets.json", gateway.home.parent / f"tiny-r{number}")
        return gateway

    yield serve
    for gateway in made:
        gateway.end()


Simulated = Callable[..., list[SimulatorProcess]]


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[Simulated]:
    """simulated(number, cached tokens of each, settings) -> simulators that are ready."""
    made: list[SimulatorProcess] = []

    def start(number: int, cached: int, **pace: str) -> list[SimulatorProcess]:
        found = []
        for _ in range(number):
            folder, port = tmp_path / f"engine{len(made)}", free_port()
            folder.mkdir()
            shutil.copy(CAPTURES / "tiny-qwen3.config.json", folder / "config.json")
            words = ["serve", str(folder), "--served-model-name", "tiny", "--load-format", "dummy"]
            words += ["--host", HEAD_ADDRESS, "--port", str(port), "--kv-cache-memory-bytes", str(cached * PER_TOKEN)]
            words += ["--max-model-len", str(min(cached, 120_000)), "--enable-prompt-tokens-details"]
            found.append(SimulatorProcess(words, folder / "log", {"VLLM_API_KEY": ENGINE_KEY, **pace}, port))
            made.append(found[-1])
        return [one.ready() for one in [one.start() for one in found]]

    yield start
    for one in made:
        one.end()


def addresses(simulators: list[SimulatorProcess]) -> list[str]:
    return [f"{HEAD_ADDRESS}:{one.port}" for one in simulators]


async def hit_rate(gateway: ReplicaGateway, simulators: list[SimulatorProcess], at_once: int, requests: int) -> float:
    """The share of prompt tokens that the engines' own counters call cached, after agents at once made so many
    requests."""
    more, left = conversations(7), iter(range(requests))

    async def one_agent(client: httpx.AsyncClient) -> None:
        conversation = next(more)
        for _ in left:
            body = {"model": "tiny", "messages": conversation.messages, "max_tokens": 2}
            answer = await client.post(CHAT, json=body)
            assert answer.status_code == 200, answer.text
            conversation = conversation if conversation.goes_on() else next(more)

    async with gateway.clients() as client:
        await asyncio.gather(*(one_agent(client) for _ in range(at_once)))
    found: Counter[str] = Counter()
    for one in simulators:
        for name, value in HITS.findall(one.get("/metrics").text):
            found[name] += int(float(value))
    return found["hits"] / found["queries"]


@pytest.mark.full
async def test_two_replicas_hit_as_often_as_one_with_all_the_cache(served: Served, simulated: Simulated) -> None:
    """Guards the reason for routing by prompt: agents on two replicas with half the cache each find at least 95 % of
    what they find on one replica with all of it."""
    total, rates = 600_000, []
    for number in (1, 2):
        simulators = simulated(number, total // number)
        rates.append(await hit_rate(served(addresses(simulators)), simulators, at_once=6, requests=300))
        for one in simulators:
            one.end()
    print(f"hit rate: one replica {rates[0]:.1%}, two {rates[1]:.1%}")
    assert rates[0] > 0.5 and rates[1] >= 0.95 * rates[0], rates


@dataclass
class Loaded:
    """Outcomes that clients saw. begun: when each request began; outcome: of each."""

    rows: list[tuple[float, str]] = field(default_factory=list)

    async def stream(self, client: httpx.AsyncClient, number: int) -> None:
        began, pieces = time.monotonic(), b""
        body: dict[str, Any] = {"model": "tiny", "stream": True, "max_tokens": 20}
        body["messages"] = [{"role": "user", "content": f"question {number} " * 50}]
        try:
            async with client.stream("POST", CHAT, json=body) as answer:
                async for piece in answer.aiter_bytes():
                    pieces += piece
                status = answer.status_code
        except httpx.TransportError:
            status = 0
        self.rows.append((began, self._outcome(status, pieces)))

    @staticmethod
    def _outcome(status: int, pieces: bytes) -> str:
        if status == 200 and pieces.endswith(b"data: [DONE]\n\n"):
            return "whole" if pieces.count(b"[DONE]") == 1 else "twice"
        if re.search(rb'"content":"[^"]', pieces):
            return "cut after tokens"
        return f"nothing: {status} {pieces!r}"


async def test_a_killed_replica_costs_no_request_that_had_no_token(served: Served, simulated: Simulated) -> None:
    """Guards clients of a killed engine, under load: those without a token are answered by the other replica, those
    with some are cut, and whoever comes later notices nothing."""
    simulators = simulated(2, 100_000, SPARKWRIGHT_SIMULATOR_TOKEN_SCALE="1", SPARKWRIGHT_SIMULATOR_STEP_MS="20")
    gateway, loaded = served(addresses(simulators)), Loaded()
    over = asyncio.Event()

    async def one_client(client: httpx.AsyncClient, name: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            await loaded.stream(client, 1000 * name + number)

    async with gateway.clients() as client, asyncio.timeout(PATIENCE):
        clients = [asyncio.create_task(one_client(client, number)) for number in range(16)]
        while len(loaded.rows) < 60:
            await asyncio.sleep(0.05)
        simulators[0].kill()
        killed, before = time.monotonic(), len(loaded.rows)
        while len(loaded.rows) < before + 100:
            await asyncio.sleep(0.05)
        over.set()
        await asyncio.gather(*clients)
    outcomes = Counter(outcome for _, outcome in loaded.rows)
    print(f"{len(loaded.rows)} requests: {dict(outcomes)}")
    assert set(outcomes) <= {"whole", "cut after tokens"}, outcomes
    assert outcomes["cut after tokens"] <= 16
    assert {outcome for began, outcome in loaded.rows if began > killed + 1.0} == {"whole"}


@pytest.mark.full
async def test_a_rolling_restart_under_ten_thousand_requests_fails_none(served: Served) -> None:
    """Guards `restart --rolling` at the gateway: replicas drain, stop and come back in turns while clients go on."""
    engines = [ScriptedEngine(f"tiny-r{number}", answer_shortly) for number in (1, 2)]
    for engine in engines:
        await engine.start()
    gateway = served([f"{HEAD_ADDRESS}:{one.port}" for one in engines])
    found: Counter[str] = Counter()
    left, rounds = iter(range(10_000)), 0

    async def one_client() -> None:
        async with gateway.clients() as client:
            for number in left:
                body = {"model": "tiny", "messages": [{"role": "user", "content": f"question {number} " * 60}]}
                answer = await client.post(CHAT, json=body)
                found[f"{answer.status_code} {answer.json().get('id') or answer.text}"] += 1

    clients = [asyncio.create_task(one_client()) for _ in range(8)]
    while not all(one.done() for one in clients):
        for number, engine in enumerate(engines, 1):
            await restart_replica(gateway, number, engine)
            rounds += 1
    await asyncio.gather(*clients)
    for engine in engines:
        await engine.stop()
    print(f"{rounds} restarts: {dict(found)}")
    assert sum(found.values()) == 10_000 and set(found) == {"200 tiny-r1", "200 tiny-r2"} and rounds >= 4


async def answer_shortly(engine: ScriptedEngine, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.01)
    await answer_named(engine, writer)


async def restart_replica(gateway: ReplicaGateway, number: int, engine: ScriptedEngine) -> None:
    """The steps of a supervisor: report, drain, stop, start, report."""
    gateway.report(number, DeploymentState.DRAINING, refusing=True)
    while (await asyncio.to_thread(gateway.flights))[f"tiny-r{number}"]["under_way"]:
        await asyncio.sleep(0.05)
    await engine.stop()
    gateway.report(number, DeploymentState.LOADING, refusing=True)
    await asyncio.sleep(0.3)
    with suppress(OSError):
        await engine.start()
    gateway.report(number, DeploymentState.READY)
    await asyncio.sleep(0.3)


@pytest.mark.full
async def test_real_engines_keep_their_conversations(tmp_path: Path, served: Served) -> None:
    """Guards routing by prompt with llama.cpp's own server twice: each next turn finds the last one in the cache, and
    a killed replica's conversation goes on at the other one."""
    llama = pytest.importorskip("functional.test_llama_cpp", reason="the wheel that holds llama.cpp's server")
    model, ports = llama.write_tiny_gguf(tmp_path / "tiny.gguf"), (free_port(), free_port())
    recipe = replace(llama.RECIPE, serving=Serving(context=4096, sequences=2, batched_tokens=256))
    async with AsyncExitStack() as stack:
        engines = []
        for port in ports:
            folder = tmp_path / f"llama{port}"
            folder.mkdir()
            spec = llama.render_rank(Path(shutil.copy(model, folder)), port, recipe)
            engines.append(await stack.enter_async_context(llama.served(spec, folder / "log")))
        gateway = served([f"{HEAD_ADDRESS}:{port}" for port in ports], engine_key=llama.KEY)
        client = await stack.enter_async_context(gateway.clients())
        talks = [[{"role": "user", "content": f"Task {number}. " * 60}] for number in (1, 2)]  # of two replicas

        async def take_turn(talk: list[dict[str, str]]) -> tuple[int, int]:
            """Prompt tokens of the next turn, and how many were cached."""
            answer = await client.post(CHAT, json={"model": "tiny", "messages": talk, "max_tokens": 4})
            assert answer.status_code == 200, answer.text
            talk += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And then? " * 10}]
            usage = answer.json()["usage"]
            return usage["prompt_tokens"], (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)

        assert [(await take_turn(talk))[1] < 200 for talk in talks] == [True, True]
        for talk in talks * 3:
            prompt, cached = await take_turn(talk)
            assert cached > 0.5 * prompt, (prompt, cached)
        engines[0].kill()
        for talk in talks:
            await take_turn(talk)
