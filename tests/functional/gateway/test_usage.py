"""Usage and limits by key, through the real Caddy and the gateway's process, against the simulator's own counters."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from fakes.ports import free_port
from functional.gateway.conftest import Opened
from functional.gateway.gateways import ENGINE_KEY, KEY, LocalGateway
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess, wait_until
from sparkwright.gateway.keys import Key, Keys, digest, text_of

CHAT, TEXT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"
TURNS = [{"role": "user", "content": "Count this."}]
USAGE = {"stream_options": {"include_usage": True}}
TOKENS = 12  # of an answer
KINDS: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"messages": TURNS}),
    (CHAT, {"messages": TURNS, "stream": True}),
    (CHAT, {"messages": TURNS, "stream": True, **USAGE}),
    (TEXT, {"prompt": "Count this.", "stream": True}),
    (MESSAGES, {"messages": TURNS}),
    (MESSAGES, {"messages": TURNS, "stream": True}),
    (RESPONSES, {"input": "Count this.", "max_output_tokens": TOKENS}),
    (RESPONSES, {"input": "Count this.", "max_output_tokens": TOKENS, "stream": True}),
    (CHAT, {"messages": TURNS, "n": 3}),  # which the engine refuses
]
COUNTERS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")


@pytest.fixture
def quick_simulator(tmp_path: Path) -> Iterator[SimulatorProcess]:
    """A simulator that answers as fast as it can."""
    folder = tmp_path / "engine"
    folder.mkdir()
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", folder / "config.json")
    port = free_port()
    words = ["serve", str(folder), "--served-model-name", "tiny", "--load-format", "dummy", "--host", HEAD_ADDRESS]
    simulator = SimulatorProcess([*words, "--port", str(port)], folder / "log", {"VLLM_API_KEY": ENGINE_KEY}, port)
    yield simulator.start().ready()
    simulator.end()


def usage_sums(gateway: LocalGateway) -> Counter[str]:
    """The sums of all keys, models and days."""
    with closing(sqlite3.connect(gateway.home / "usage.sqlite")) as link:
        link.row_factory = sqlite3.Row
        found: Counter[str] = Counter()
        for row in link.execute("SELECT * FROM usage"):
            found.update({name: value for name, value in zip(row.keys(), row, strict=True) if isinstance(value, int)})
        return found


def engine_counts(engine: SimulatorProcess) -> tuple[int, int]:
    page = httpx.get(f"http://{HEAD_ADDRESS}:{engine.port}/metrics", timeout=60).text
    found = {line.split("{")[0]: float(line.split()[-1]) for line in page.splitlines() if line.startswith(COUNTERS)}
    return int(found[COUNTERS[0]]), int(found[COUNTERS[1]])


def limit_key(gateway: LocalGateway, **limits: int) -> None:
    key = replace(Key("ci", digest(KEY)), **limits)  # type: ignore[arg-type]
    (gateway.home / "keys.new").write_text(text_of(Keys((key,))))
    (gateway.home / "keys.new").replace(gateway.home / "keys.json")


async def send_one(client: httpx.AsyncClient, number: int, leave: bool) -> str:
    """One request of some kind; the client sees no event that it did not ask for. Returns how it ended."""
    path, body = KINDS[number % len(KINDS)]
    try:
        async with client.stream("POST", path, json={"model": "tiny", "max_tokens": TOKENS, **body}) as answer:
            if leave and answer.status_code == 200:
                await anext(answer.aiter_raw())
                return "left"
            text = (await answer.aread()).decode()
    except httpx.TransportError:
        return "lost"
    if answer.status_code != 200:
        return str(answer.status_code)
    if path == CHAT and body.get("stream"):
        assert ('"choices":[]' in text) == ("stream_options" in body)
        assert text.endswith("data: [DONE]\n\n")
    return "whole"


async def send_many(gateway: LocalGateway, count: int, leaving: int = 0, clients: int = 16) -> Counter[str]:
    """Sends `count` requests, every `leaving`th of which its client leaves."""
    ends: Counter[str] = Counter()
    numbers = iter(range(count))
    headers = {"Authorization": f"Bearer {KEY}"}

    async def work() -> None:
        async with httpx.AsyncClient(base_url=gateway.url, verify=gateway.trusted, headers=headers, timeout=60) as own:
            for number in numbers:
                ends[await send_one(own, number, bool(leaving) and number % leaving == 1)] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(work())
    return ends


@pytest.mark.parametrize("count", [270, pytest.param(10_000, marks=pytest.mark.full)])
async def test_usage_is_the_engines_own_count(quick_simulator: SimulatorProcess, opened: Opened, count: int) -> None:
    """Whole and streamed requests of all APIs and refused ones add up to the engine's counters, to the token."""
    gateway = opened(f"{HEAD_ADDRESS}:{quick_simulator.port}", engine_key=ENGINE_KEY)
    before = engine_counts(quick_simulator)
    ends = await send_many(gateway, count)
    wait_until("all are counted", lambda: _over(usage_sums(gateway)) == count)
    used, after = usage_sums(gateway), engine_counts(quick_simulator)
    assert (used["prompt"], used["completion"]) == (after[0] - before[0], after[1] - before[1])
    assert (used["finished"], used["failed"]) == (ends["whole"], ends["400"])
    assert used["requests"] == count


# Rows of requests that are not written yet when the process is killed
LOST = 40


@pytest.mark.full
@pytest.mark.parametrize("count", [180, 600])
async def test_cancels_and_a_killed_gateway_lose_no_whole_request(
    quick_simulator: SimulatorProcess, opened: Opened, count: int
) -> None:
    """Whole answers stay counted to the token but for the last moment before a kill; what clients left, or the kill
    cut, is named, with its least tokens.

    The engine's counters are ahead of both by no more than what those requests can have made.
    """
    gateway = opened(f"{HEAD_ADDRESS}:{quick_simulator.port}", engine_key=ENGINE_KEY)
    before = engine_counts(quick_simulator)
    first = await send_many(gateway, count, leaving=7)
    running = asyncio.create_task(send_many(gateway, count))
    while usage_sums(gateway)["requests"] <= count + 20 and not running.done():
        await asyncio.sleep(0.01)
    gateway.end("service")
    gateway.start_service()
    second = await running
    third = await send_many(gateway, count)

    def settled() -> bool:
        used = usage_sums(gateway)
        return used["finished"] >= first["whole"] + third["whole"] and _open(used) <= 16 + LOST

    wait_until("all but the killed ones are counted", settled)
    used, after = usage_sums(gateway), engine_counts(quick_simulator)
    whole = (first + second + third)["whole"]
    unknown = used["cut"] + _open(used) + LOST
    assert -LOST <= used["finished"] - whole <= first["left"] + 16  # whole at the gateway before their client left
    assert 0 <= after[1] - before[1] - used["completion"] - used["at_least"] <= TOKENS * unknown
    assert 0 <= after[0] - before[0] - used["prompt"] <= 40 * unknown
    print(
        f"{count * 3} requests: {dict(first + second + third)}; counted {dict(used)}; engine {after}, before {before}"
    )


def _open(used: Counter[str]) -> int:
    return used["requests"] - _over(used)


def _over(used: Counter[str]) -> int:
    return used["finished"] + used["failed"] + used["cut"] + used["uncounted"]


@pytest.mark.parametrize(
    ("path", "body"), [(CHAT, {"messages": TURNS}), (MESSAGES, {"messages": TURNS}), (RESPONSES, {"input": "Count."})]
)
def test_of_a_stream_that_was_cut_the_least_is_known(gateway: LocalGateway, path: str, body: dict[str, Any]) -> None:
    """A client leaves after some events with text: as many tokens are counted, and no more than the engine made."""
    headers, seen = {"Authorization": f"Bearer {KEY}"}, 0
    with httpx.Client(base_url=gateway.url, verify=gateway.trusted, headers=headers, timeout=60) as client:
        asked = {"model": "tiny", "max_tokens": 400, "max_output_tokens": 400, "stream": True, **body}
        with client.stream("POST", path, json=asked) as answer:
            for line in answer.iter_lines():
                text = [json.loads(line[5:])] if line.startswith("data:") else []
                seen += any(_text(one) for one in text)
                if seen >= 5:
                    break
    wait_until("it is counted", lambda: usage_sums(gateway)["cut"] == 1)
    used = usage_sums(gateway)
    assert 5 <= used["at_least"] <= 400
    assert (used["finished"], used["completion"]) == (0, 0)


def _text(event: dict[str, Any]) -> str:
    delta = event["choices"][0]["delta"] if "choices" in event else event.get("delta", "")
    return delta if isinstance(delta, str) else delta.get("content") or delta.get("text") or ""


async def test_limits_hold_for_a_hundred_clients(quick_simulator: SimulatorProcess, opened: Opened) -> None:
    """No more of a hundred at once pass than the key may, and the others learn when to come again."""
    gateway = opened(f"{HEAD_ADDRESS}:{quick_simulator.port}", engine_key=ENGINE_KEY)
    limit_key(gateway, per_minute=40)
    ends = await send_many(gateway, 300, clients=100)
    assert ends["429"] == 260
    refused = gateway.post(CHAT, {"messages": TURNS})
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    gateway.end("service")
    gateway.start_service()  # requests of the last minute outlive it, too
    assert gateway.post(CHAT, {"messages": TURNS}).status_code == 429
    limit_key(gateway, tokens_a_day=usage_sums(gateway)["prompt"])
    refused = gateway.post(CHAT, {"messages": TURNS})
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "tokens")
    gateway.end("service")
    gateway.start_service()  # a day's tokens outlive it
    assert gateway.post(CHAT, {"messages": TURNS}).status_code == 429
    limit_key(gateway)
    assert gateway.post(CHAT, {"messages": TURNS}).status_code == 200


@pytest.mark.full
async def test_no_more_at_once_than_a_key_may(gateway: LocalGateway) -> None:
    """The limit's number of slow requests are under way, of a hundred; when those end, others pass."""
    limit_key(gateway, at_once=5)
    ends = await send_many(gateway, 100, clients=100)
    assert ends["whole"] + ends["400"] + ends["429"] == 100
    wait_until("all are counted", lambda: usage_sums(gateway)["refused"] == ends["429"] > 0)
    assert usage_sums(gateway)["requests"] >= 5
    assert (await send_many(gateway, 9, clients=4))["429"] == 0


def test_nothing_of_a_request_is_stored(gateway: LocalGateway) -> None:
    """Neither prompt nor answer nor key gets into the database; only its user can read it."""
    gateway.post(CHAT, {"model": "tiny", "messages": [{"role": "user", "content": "my secret words"}]})
    gateway.post(CHAT, {"model": "a name that nobody serves", "messages": TURNS})
    wait_until("both are counted", lambda: usage_sums(gateway)["finished"] + usage_sums(gateway)["failed"] == 2)
    files = list(gateway.home.glob("usage.sqlite*"))
    content = b"".join(file.read_bytes() for file in files)
    assert files[0].stat().st_mode & 0o077 == 0
    for word in (b"secret", b"nobody serves", b"simulated", KEY.encode()):
        assert word not in content


@pytest.mark.full
def test_a_database_that_cannot_be_used_costs_no_request(gateway: LocalGateway) -> None:
    """A folder in its place: one line in the log, answers as before."""
    gateway.end("service")
    for file in gateway.home.glob("usage.sqlite*"):
        file.unlink()
    (gateway.home / "usage.sqlite").mkdir()
    gateway.start_service()
    assert gateway.post(CHAT, {"messages": TURNS}).status_code == 200
    assert gateway.log("service").count("usage is not counted") == 1
    assert "usage.sqlite" in str(gateway.flights()["tiny"]["trouble"])


def test_a_clock_that_jumps_over_midnight_counts_each_request_once(tmp_path: Path) -> None:
    """A request belongs to the day on which it began, wherever the clock is at its end."""
    code = """
import json, sys
from pathlib import Path
from sparkwright.adapters.sqlite.usage import UsageStore
from sparkwright.gateway.keys import Key
from sparkwright.supervisor.proxy.engine_answer import EngineAnswer
from sparkwright.supervisor.proxy.meter import Meter
class Clock:
    at, steady = 86400.0 * 10 - 1, 0.0
    def now(self): return self.at
    def monotonic(self): return self.steady
clock = Clock()
meter = Meter(clock, UsageStore(Path(sys.argv[1])))
key = Key("ci", "", tokens_a_day=10)
def ask(after):
    entry = meter.enter(key, "m")
    if hasattr(entry, "status"): return entry.retry_after
    one = meter.begin(entry, "m", "/v1/messages")
    clock.at += after
    answer = EngineAnswer("POST")
    one.begins(answer if answer.feed(b"HTTP/1.1 200 OK\\r\\n\\r\\n") else answer)
    one.saw(b'{"usage": {"prompt_tokens": 6, "completion_tokens": 4}}')
    one.ended(True)
    entry.leave()
print(json.dumps([ask(2), ask(-4), ask(0), ask(0)]))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == [None, None, 3, 3], done.stderr
    with closing(sqlite3.connect(tmp_path / "usage.sqlite")) as link:
        found = link.execute("SELECT day, requests, finished, prompt, refused FROM usage ORDER BY day").fetchall()
    assert found == [("1970-01-10", 1, 1, 6, 2), ("1970-01-11", 1, 1, 6, 0)]
