"""The traps that mislead clients, each with the truth known from the server's own log of the same run."""

import asyncio
import os
import signal
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from functional.load.playing import is_near, send_requests, send_time
from functional.load.truth import (
    HEAD,
    LAST,
    ROLE,
    ScriptStep,
    SeenRequest,
    chunked,
    delta_event,
    ending,
    plain_answer,
    sse_event,
    steady,
    truth_server,
)
from sparkwright.domain.errors import NotReady


async def test_times_are_those_of_the_server() -> None:
    """TTFT, each token and the end, on four streams at once, as the server's log shows."""
    async with truth_server(steady(tokens=5, first=0.2, gap=0.05)) as server:
        rows, lag = await send_requests(server.url, count=8, streams=4)
    assert [row.error for row in rows] == [""] * 8
    for row in rows:
        seen = next(one for one in server.seen if f"question {row.session}" in one.body.decode())
        assert is_near(row.first, send_time(seen, 1), lag, server) and is_near(
            row.end, send_time(seen, -1), lag, server
        )
        assert row.headers is not None and is_near(row.headers, send_time(seen, 0), lag, server)
        last = accumulate(row.reads.tokens)
        assert all(
            is_near(at, send_time(seen, token), lag, server) for at, token in zip(row.reads.at, last, strict=True)
        )
        assert (sum(row.reads.tokens), row.reads.exact, row.output_tokens) == (5, True, 5)


async def test_head_and_role_are_no_token() -> None:
    """Both come at once, the token half a second later: TTFT is the token's."""
    script = [ScriptStep(0.0, HEAD + chunked(ROLE)), ScriptStep(0.5, chunked(delta_event(content="a")) + ending(1))]
    async with truth_server(lambda _: script) as server:
        (row,), lag = await send_requests(server.url)
    assert is_near(row.first, send_time(server.seen[0], 1), lag, server) and row.first and row.first > 0.4
    assert is_near(row.headers, send_time(server.seen[0], 0), lag, server)


async def test_several_tokens_in_a_chunk() -> None:
    """Speculation: 12 tokens in 3 chunks are 12 tokens, with continuous usage in the right places; a busy machine may
    read two chunks at once."""
    script = [
        ScriptStep(0.0, HEAD + chunked(delta_event(role="assistant", content="", usage=0))),
        ScriptStep(0.1, chunked(delta_event(content="aaa", usage=3))),
        ScriptStep(0.2, chunked(delta_event(content="b", usage=9))),
        ScriptStep(0.3, chunked(delta_event("length", content="cc", usage=12)) + ending(12)),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), _ = await send_requests(server.url)
    assert set(accumulate(row.reads.tokens)) <= {3, 9, 12}
    assert (sum(row.reads.tokens), row.reads.exact, row.output_tokens, row.chunks) == (12, True, 12, 5)


async def test_coalesced_reads() -> None:
    """A proxy that holds tokens back: four of them in one read are four tokens at one time."""
    held = [delta_event(content="a") for _ in range(4)]
    script = [
        ScriptStep(0.0, HEAD),
        ScriptStep(0.1, chunked(ROLE, *held)),
        ScriptStep(1.6, chunked(*held)),  # what is closer may be read at once on a busy machine
        ScriptStep(1.7, ending(8)),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), lag = await send_requests(server.url)
    assert (row.reads.tokens, row.reads.exact) == ((4, 4), True)
    assert is_near(row.reads.at[1], send_time(server.seen[0], 2), lag, server)


async def test_reads_that_end_anywhere() -> None:
    """Every byte in a write of its own: in `data:`, in a character, in the length of a chunk."""
    whole = (
        HEAD + chunked(b": ping\n\n", ROLE, delta_event(content="ä€😀"), delta_event("stop", content="b")) + ending(2)
    )
    steps = [ScriptStep(0.001 * place, bytes([byte])) for place, byte in enumerate(whole)]
    async with truth_server(lambda _: steps) as server:
        (row,), _ = await send_requests(server.url, keep_text=True)
    assert (row.error, row.text, row.output_tokens, row.finish) == ("", "ä€😀b", 2, "stop")
    assert row.bytes == len(whole) and sum(row.reads.tokens) == 2


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_reasoning_counts(name: str) -> None:
    """TTFT is the first token of any kind; when the answer itself began is kept apart."""
    script = [
        ScriptStep(0.0, HEAD + chunked(ROLE)),
        ScriptStep(0.1, chunked(delta_event(**{name: "hm"}))),
        ScriptStep(
            0.5,
            chunked(delta_event("stop", content="yes")) + ending(2, completion_tokens_details={"reasoning_tokens": 1}),
        ),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), lag = await send_requests(server.url)
    assert is_near(row.first, send_time(server.seen[0], 1), lag, server) and is_near(
        row.first_content, send_time(server.seen[0], 2), lag, server
    )
    assert (row.output_tokens, row.reasoning_tokens) == (2, 1)


async def test_answers_of_reasoning_alone() -> None:
    """A model that was cut while it reasoned has tokens, a TTFT and no content."""
    script = [
        ScriptStep(0.0, HEAD),
        ScriptStep(0.1, chunked(delta_event(reasoning="hm"))),
        ScriptStep(0.2, chunked(delta_event("length", reasoning="m")) + ending(2)),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), lag = await send_requests(server.url)
    assert is_near(row.first, send_time(server.seen[0], 1), lag, server)
    assert (row.first_content, row.error, row.output_tokens) == (None, "", 2)


async def test_a_stall_is_seen_where_it_was() -> None:
    """A pause of 1.5 s between two tokens is one long gap, and no other time is changed by it."""
    at = [0.1, 0.15, 1.65, 1.7]
    script = [
        ScriptStep(0.0, HEAD),
        *(ScriptStep(when, chunked(delta_event(content="a"))) for when in at),
        ScriptStep(1.75, ending(4)),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), lag = await send_requests(server.url)
    gaps = [b - a for a, b in pairwise(row.reads.at)]
    assert is_near(max(gaps), send_time(server.seen[0], 3) - send_time(server.seen[0], 2), lag, server)
    assert max(gaps) > 0.4


async def test_one_stream_that_stops_holds_up_no_other() -> None:
    """The other streams have their true times while one is silent."""

    def script(seen: SeenRequest) -> list[ScriptStep]:
        return list(steady(4, 1.0 if "question 0" in seen.body.decode() else 0.1, 0.05)(seen))

    async with truth_server(script) as server:
        rows, lag = await send_requests(server.url, count=6, streams=6)
    assert rows[0].first and rows[0].first > 0.8
    assert all(is_near(row.first, 0.1, lag, server) for row in rows[1:])


async def test_failures_are_rows() -> None:
    """One in ten is refused with 500: so many rows report it, with the server's message, and the others are whole."""

    def script(seen: SeenRequest) -> list[ScriptStep]:
        return (
            plain_answer("500 Oops", {"error": {"message": "meant"}})
            if seen.number % 10 == 3
            else list(steady(2, 0.01, 0.01)(seen))
        )

    async with truth_server(script) as server:
        rows, _ = await send_requests(server.url, count=40, streams=8)
    assert [row.kind for row in rows].count("http-500") == 4
    assert {row.error for row in rows if row.kind} == {"meant"}
    assert sum(row.output_tokens or 0 for row in rows) == 72


async def test_an_error_inside_the_stream() -> None:
    """The error as vLLM sends it when its engine dies: status 200, a token, then an error object and [DONE]."""
    died = sse_event({"error": {"message": "EngineCore encountered an issue", "code": 500}})
    script = [
        ScriptStep(0.0, HEAD),
        ScriptStep(0.05, chunked(delta_event(content="a"))),
        ScriptStep(0.1, chunked(died, sse_event("[DONE]")) + LAST),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), _ = await send_requests(server.url)
    assert (row.kind, row.error, row.status) == ("error-in-stream", "EngineCore encountered an issue", 200)
    assert row.first is not None


async def test_without_usage_times_are_kept_and_tokens_are_not() -> None:
    """Nothing is counted from chunks: the row went well and reports that it has no tokens."""
    script = [
        ScriptStep(0.0, HEAD),
        ScriptStep(0.05, chunked(delta_event(content="a"))),
        ScriptStep(0.1, chunked(delta_event("stop", content="b")) + ending(None)),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), lag = await send_requests(server.url)
    assert (row.kind, row.error, row.output_tokens, len(row.reads.at)) == ("no-usage", "", None, 0)
    assert is_near(row.first, send_time(server.seen[0], 1), lag, server)


async def test_the_clients_own_delay_is_reported() -> None:
    """A worker that is stopped for 0.4 s cannot have read in time, and reports it."""
    async with truth_server(steady(12, 0.1, 0.1)) as server:
        task = asyncio.ensure_future(send_requests(server.url))
        while not server.seen:
            await asyncio.sleep(0.01)
        await _stopped_for(0.4)
        _, lag = await task
    assert lag.most >= 0.3 and lag.p99 >= 0.3


async def test_a_client_that_is_killed_reports_it() -> None:
    """The kernel kills the worker first if memory is short: no bug of ours, and never a hang."""
    async with truth_server(steady(12, 0.1, 0.1)) as server:
        task = asyncio.ensure_future(send_requests(server.url))
        while not server.seen:
            await asyncio.sleep(0.01)
        os.kill(_worker(), signal.SIGKILL)
        with pytest.raises(NotReady, match="the process that sends the requests was killed by signal 9"):
            await task


async def _stopped_for(seconds: float) -> None:
    os.kill(worker := _worker(), signal.SIGSTOP)
    await asyncio.sleep(seconds)
    os.kill(worker, signal.SIGCONT)


def _worker() -> int:
    """The one child of this process that sends requests."""
    mine = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (worker,) = [pid for pid in mine if b"load.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(worker)
