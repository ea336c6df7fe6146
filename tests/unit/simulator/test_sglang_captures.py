"""The simulator's SGLang against what SGLang 0.5.12 printed and sent: lines, answers, refusals, routes, metrics."""

from __future__ import annotations

import asyncio
import io
import json
import re
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from simulators import sglang
from simulators.site import SimulatedSite
from sparkwright.simulator.job import Job
from sparkwright.simulator.link import HeadLink
from sparkwright.simulator.log import LogVoice, Voices
from sparkwright.simulator.rank import SimulatedRank
from sparkwright.simulator.service import Core, DialectTrouble
from unit.simulator.inprocess import CAPTURES, InProcessClient, MakeRank, wait_until
from unit.simulator.test_dialects import start

RECORDED = CAPTURES.parent / "sglang"
GIVEN = Namespace(enable_metrics=True, enable_cache_report=True, model_path="m", load_format="dummy")
FLAGS = ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
KEY = "sk-test"
# Of the web server, the warm-up request and graphs' bars.
OTHERS = re.compile(r"HTTP/1\.1|Started server|Waiting for application|startup complete|chat template|^Capturing")


def spoken(make_rank: MakeRank, *flags: str, **env: str) -> tuple[SimulatedRank, io.StringIO]:
    out = io.StringIO()
    rank = make_rank("--port", "30000", "--load-format", "dummy", *FLAGS, *flags, env=env)
    voice = LogVoice("", 7, out, sglang._form(rank.number, rank.limits.world))
    return replace(rank, voices=Voices(*[voice] * 4)), out


def plain_lines(text: str) -> list[str]:
    """The lines without times, figures, addresses and names."""
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip() and not OTHERS.search(line)]
    lines = [re.sub(r"^\[[\d :-]+( TP\d)?\]", r"[AT\1]", line) for line in lines]
    lines = [re.sub(r"http://\S+|\[[\d, ]+\]|type=\w+", "#", line) for line in lines]
    return [re.sub(r"-?\d[\d.]*", "#", line) for line in lines]


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


async def test_one_node_starts_with_the_recorded_lines(make_rank: MakeRank) -> None:
    """Every line of the engine's own from the rendezvous to ready, in order."""
    rank, out = spoken(make_rank)
    await start(sglang.SglangDialect(GIVEN, "0.5.12", True), rank)
    assert plain_lines(out.getvalue())[2:] == plain_lines(recorded("start.log"))


async def test_a_worker_at_the_head_s_address_has_the_recorded_lines(make_rank: MakeRank) -> None:
    """Every rank opens --host: on a worker that fails, and it serves all the same."""
    flags = ["--nnodes", "2", "--node-rank", "1", "--headless", "--tensor-parallel-size", "2"]
    rank, out = spoken(make_rank, *flags, "--master-addr", "10.0.0.1")
    rank.args.host = "192.0.2.1"
    dialect = sglang.SglangDialect(GIVEN, "0.5.12", True)
    dialect.join(rank)
    dialect.met(rank, [])
    await dialect.load(rank)
    await dialect.fit(rank)
    await dialect.capture(rank)
    async with dialect.companions(rank):
        assert "Dummy health check server stopped" in out.getvalue()
    # `max_total_num_tokens` is the head's line
    assert [line for line in plain_lines(out.getvalue()) if "max_total" not in line] == plain_lines(
        recorded("worker.log").replace("10.0.0.1", "192.0.2.1")
    )


async def test_a_broken_group_ends_with_the_recorded_lines(make_rank: MakeRank) -> None:
    """The scheduler's exception with Gloo's text, then SIGQUIT; then it kills itself, unless a fault forbids."""
    rank, out = spoken(make_rank, SPARKWRIGHT_SIMULATOR_FAULT="ignore_sigterm")
    assert await sglang.SglangDialect(GIVEN, "0.5.12", True).lost(rank) == 1
    ours, theirs = plain_lines(out.getvalue()), plain_lines(recorded("lost.log"))
    assert (ours[0], ours[-1]) == (theirs[0].replace(" TP#", ""), theirs[-1])
    assert ours[1].partition(" Read error")[0] == theirs[-2].partition(" Read error")[0]
    assert ours[1].endswith("Connection reset by peer") and theirs[-2].endswith("Connection reset by peer")


@pytest.fixture
async def make_site(
    make_rank: MakeRank,
) -> AsyncIterator[Callable[..., Awaitable[tuple[SimulatedSite, InProcessClient, io.StringIO]]]]:
    running: list[asyncio.Task[None]] = []

    async def make(key: str = "") -> tuple[SimulatedSite, InProcessClient, io.StringIO]:
        rank, out = spoken(make_rank, *(["--api-key", key] if key else []))
        dialect = sglang.SglangDialect(GIVEN, "0.5.12", True)
        core = Core(rank, HeadLink(1), DialectTrouble(lambda: None, lambda _: asyncio.sleep(0)))
        site = SimulatedSite(core, "SGLang 0.5.12", dialect.metrics, dialect.labels, dialect.api)
        site.up = True
        running.append(asyncio.create_task(core.engine.run()))
        server = SimpleNamespace(app=lambda keys: site.app(dialect.routes(site), dialect.guarded))
        return site, InProcessClient(SimpleNamespace(rank=rank, server=server)), out  # type: ignore[arg-type]

    yield make
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


MakeSite = Callable[..., Awaitable[tuple[SimulatedSite, InProcessClient, io.StringIO]]]


def chunks(reads: list[str]) -> list[str]:
    """The chunks without varying parts; runs of the same chunk count once."""
    found = []
    for read in reads:
        read = re.sub(r'"(text|content|reasoning_content)":"(?:[^"\\]|\\.)+"', r'"\1":"..."', read)
        read = re.sub(r'"id":"[0-9a-f]{32}"|"model":"[^"]+"|(?<=:)\d+', "#", read)
        if not found or found[-1] != read:
            found.append(read)
    return found


@pytest.mark.parametrize("label", ["chat usage", "chat again, cached, no thinking", "completion", "not streamed"])
async def test_an_answer_has_the_recorded_chunks(make_site: MakeSite, label: str) -> None:
    """Role, deltas with reasoning_content, the reason in a chunk of its own, usage with cached and reasoning tokens."""
    seen = next(one for one in json.loads(recorded("sse.json")) if one["label"] == label)
    _, client, _ = await make_site()
    request: dict[str, Any] = {**seen["request"], "max_tokens": 8}
    if "messages" in request:
        request["messages"] = [{"role": "user", "content": "the same words again " * 40}]
        await client.post(seen["path"], request)  # cached then, as it was
    reply = await client.post(seen["path"], request)
    assert chunks([read.decode() for read in reply.reads]) == chunks([chunk[1] for chunk in seen["chunks"]])


async def test_routes_are_guarded_as_recorded(make_site: MakeSite) -> None:
    """Only /health, /health_generate and /metrics answer without the key; /version is not there."""
    _, client, _ = await make_site(KEY)
    for name, (status, _) in json.loads(recorded("routes.json")).items():
        who, method, path = re.fullmatch(r"(open|key) (POST )?(\S+).*", name).groups()  # type: ignore[union-attr]
        if who == "open":
            assert (await client.send("POST" if method else "GET", path, b"{}", "")).status == status, name
    assert (await client.get("/version", KEY)).status == 404


@pytest.mark.parametrize(
    ("sent", "like"),
    [
        ({"prompt": "a " * 40000, "max_tokens": 1}, "is longer than the model's context length"),
        ({"prompt": "a", "max_tokens": 50000}, "Requested token count exceeds"),
        ({}, "1 validation error"),
    ],
)
async def test_a_bad_request_is_refused_as_recorded(make_site: MakeSite, sent: dict[str, Any], like: str) -> None:
    """400 with SGLang's own object and text."""
    _, client, _ = await make_site()
    reply = await client.post("/v1/completions", {"model": "tiny-qwen3", **sent})
    answers = [body for status, body in json.loads(recorded("routes.json")).values() if status == 400]
    (theirs,) = [body for body in answers if like in body]
    assert reply.status == 400
    assert re.sub(r"\d+", "#", reply.text) == re.sub(r"\d+", "#", theirs)


async def test_a_wrong_model_name_is_answered(make_site: MakeSite) -> None:
    """The answer has that name, with 200: a client that asks for another model is not warned."""
    _, client, _ = await make_site()
    reply = await client.post("/v1/chat/completions", {"model": "nope", "messages": [], "max_tokens": 2})
    assert (reply.status, reply.json["model"]) == (200, "nope")


def labels(page: str) -> dict[str, set[str]]:
    """Metric -> the names of its labels."""
    found: dict[str, set[str]] = {}
    for line in page.splitlines():
        if match := re.match(r"(sglang:\w+)\{(.*)\} \S+$", line):
            found[match[1]] = set(re.findall(r'(\w+)="', match[2]))
    return found


async def test_metrics_have_the_recorded_labels(make_site: MakeSite) -> None:
    """The scheduler's counts have their rank, cached tokens their source, and every series is there once."""
    _, client, _ = await make_site()
    prompt = {"prompt": "the same words again " * 40, "max_tokens": 4}
    for _ in range(2):
        await client.post("/v1/completions", prompt)
    page = (await client.get("/metrics")).text
    ours, theirs = labels(page), labels(recorded("metrics.txt"))
    wanted = set(sglang.METRICS) & set(theirs)
    assert {name: ours[name] for name in wanted} == {name: theirs[name] for name in wanted}
    assert {"sglang:cached_tokens_total", "sglang:num_running_reqs", "sglang:num_requests_total"} <= wanted
    samples = [line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")]
    assert len(samples) == len(set(samples))


async def test_sigterm_waits_for_requests(make_site: MakeSite) -> None:
    """It counts what remains again and again, in the recorded form, and continues only when nothing does."""
    site, _, out = await make_site()
    job = Job("request-1", [1, 2, 3], iter(()), 10, ())
    site.core.engine.running.append(job)
    dialect = sglang.SglangDialect(GIVEN, "0.5.12", True)
    draining = asyncio.create_task(dialect.drained(site.core))
    await wait_until(lambda: out.getvalue().count("Gracefully exiting") >= 3)
    assert not draining.done()
    site.core.engine.running.remove(job)
    await draining
    dialect.stopping(site.core.rank)
    ours, theirs = ({re.sub(r"\[[^]]*\]\.$", "[...].", line) for line in plain_lines(text)} for text in (
        out.getvalue(), recorded("shutdown.log")))  # fmt: skip
    assert ours == theirs
