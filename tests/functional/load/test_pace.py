"""The send times of requests: closed loop, open loop, agents; and that nothing of a job outlives it."""

import asyncio
import json
import os
from itertools import pairwise
from pathlib import Path

from functional.load.playing import chat_turn, is_near, played, singles
from functional.load.truth import (
    HEAD,
    ROLE,
    ScriptStep,
    SeenRequest,
    chunked,
    delta_event,
    ending,
    plain_answer,
    steady,
    truth_server,
)
from sparkwright.adapters.load.client import ProcessClient
from sparkwright.domain.run import LoadJob, Session, Turn
from sparkwright.domain.workload import Arrival, Pace


def in_flight(seen: list[SeenRequest]) -> int:
    """The most requests that the server had at a time."""
    times = sorted([(one.received, 1) for one in seen] + [(one.sends[-1], -1) for one in seen])
    now, most = 0, 0
    for _, step in times:
        now += step
        most = max(most, now)
    return most


async def test_closed_loop_keeps_its_streams_busy() -> None:
    """Never more than so many at a time, and the next goes out when one has ended."""
    async with truth_server(steady(3, 0.05, 0.05)) as server:
        rows, lag = await played(LoadJob(server.url, singles(12), Pace(concurrency=3), whole=30.0))
    assert in_flight(server.seen) == 3
    assert all(row.sent >= row.intended and is_near(row.sent, row.intended, lag, server) for row in rows)


async def test_open_loop_sends_on_time() -> None:
    """Each at its own time, whatever the answers do."""
    times = [0.0, 0.1, 0.15, 0.15, 0.6]
    pace = Pace(Arrival.POISSON, concurrency=0, rate=10.0)
    async with truth_server(steady(2, 0.5, 0.1)) as server:
        rows, lag = await played(LoadJob(server.url, singles(5, times), pace, whole=30.0))
    assert [round(row.intended, 6) for row in rows] == times
    assert all(is_near(row.sent, row.intended, lag, server) and row.sent >= row.intended for row in rows)
    arrived = [one.received - server.seen[0].received for one in server.seen]
    assert is_near(arrived[-1], 0.6, lag, server)


async def test_a_full_house_is_measured_from_the_intended_time() -> None:
    """Open loop with a limit: who has to wait is sent late, and its intended time does not move."""
    pace = Pace(Arrival.CONSTANT, concurrency=1, rate=20.0)
    async with truth_server(steady(2, 0.2, 0.1)) as server:
        rows, _ = await played(LoadJob(server.url, singles(3, [0.0, 0.05, 0.1]), pace, whole=30.0))
    assert in_flight(server.seen) == 1
    assert [round(row.intended, 6) for row in rows] == [0.0, 0.05, 0.1]
    assert rows[2].sent - rows[2].intended > 0.4


def agent_session(number: int, turns: int, think: float = 0.0) -> Session:
    def message(place: int) -> str:
        return json.dumps({"role": "user", "content": f"agent {number} turn {place}"})

    return Session(
        number,
        tuple(
            Turn('{"model":"m","messages":[', message(place), "]}", True, think if place else 0.0)
            for place in range(turns)
        ),
    )


async def test_agents_carry_their_history() -> None:
    """Each turn holds all before it and the real answers, escaped as JSON has it."""
    sentence = 'He sentence "ä€😀\\"\n'
    steps = [
        ScriptStep(0.0, HEAD),
        ScriptStep(
            0.02,
            chunked(ROLE, delta_event(content=sentence[:9]), delta_event("stop", content=sentence[9:])) + ending(2),
        ),
    ]
    async with truth_server(lambda _: steps) as server:
        rows, _ = await played(
            LoadJob(server.url, (agent_session(0, 3), agent_session(1, 3)), Pace(concurrency=2), whole=30.0)
        )
    assert [(row.session, row.turn, row.error) for row in rows] == [(a, t, "") for a in (0, 1) for t in (0, 1, 2)]
    (last,) = [one for one in server.seen if "agent 1 turn 2" in one.body.decode()]
    contents = [message["content"] for message in last.json["messages"]]
    assert contents == ["agent 1 turn 0", sentence, "agent 1 turn 1", sentence, "agent 1 turn 2"]
    assert [message["role"] for message in last.json["messages"]] == ["user", "assistant"] * 2 + ["user"]


async def test_agents_think() -> None:
    """The pause counts from the end of the answer before; an agent that thinks keeps its place."""
    async with truth_server(steady(2, 0.05, 0.05)) as server:
        rows, lag = await played(LoadJob(server.url, (agent_session(0, 3, 0.4),), Pace(concurrency=1), whole=30.0))
    for before, after in pairwise(rows):
        assert before.end is not None
        assert is_near(after.intended - (before.sent + before.end), 0.4, lag, server) and is_near(
            after.sent, after.intended, lag, server
        )


async def test_an_agent_that_only_calls_tools() -> None:
    """The calls join the history as text; an answer of reasoning alone joins it empty."""
    call = {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "find", "arguments": "{}"}}]}
    answers = {"turn 1": delta_event("stop", reasoning="hm"), "turn 0": delta_event("tool_calls", **call)}

    def script(seen: SeenRequest) -> list[ScriptStep]:
        text = seen.body.decode()
        sentence = next((one for name, one in answers.items() if name in text), b"")
        return [ScriptStep(0.0, HEAD + chunked(sentence) + ending(3))]

    async with truth_server(script) as server:
        await played(LoadJob(server.url, (agent_session(0, 3),), Pace(), whole=30.0))
    contents = [message["content"] for message in server.seen[2].json["messages"]]
    assert json.loads(contents[1]) == [{"name": "find", "arguments": "{}"}] and contents[3] == ""


async def test_a_failed_turn_ends_its_agent() -> None:
    """There is no answer to go on from: no later turn is sent, and the next agent begins."""

    def script(seen: SeenRequest) -> list[ScriptStep]:
        return (
            plain_answer("500 No", {"error": "no"})
            if "agent 0 turn 1" in seen.body.decode()
            else list(steady(2, 0.01, 0.01)(seen))
        )

    async with truth_server(script) as server:
        rows, _ = await played(LoadJob(server.url, (agent_session(0, 3), agent_session(1, 2)), Pace(), whole=30.0))
    assert [(row.session, row.turn, row.kind) for row in rows] == [
        (0, 0, ""),
        (0, 1, "http-500"),
        (1, 0, ""),
        (1, 1, ""),
    ]


async def test_the_level_ends_in_time() -> None:
    """Requests in flight then are reported as such; unsent ones give no row."""
    async with truth_server(steady(1000, 0.05, 0.05)) as server, asyncio.timeout(60.0):
        rows, _ = await played(LoadJob(server.url, singles(50), Pace(concurrency=2), whole=2.5))
    assert [row.kind for row in rows] == ["time-up", "time-up"]
    assert all(row.first is not None for row in rows)


async def test_what_was_planned_is_in_the_row() -> None:
    """Number, warm-up, planned lengths: what the statistics go by."""
    planned = chat_turn(0, prompt_tokens=256, output_tokens=2, cached_tokens=128, warmup=True)
    async with truth_server(steady(2, 0.01, 0.01)) as server:
        (row,), _ = await played(LoadJob(server.url, (Session(7, (planned,), counted=False),), Pace(), whole=30.0))
    assert (row.session, row.counted, row.warmup) == (7, False, True)
    assert (row.planned_prompt, row.planned_output, row.planned_cached) == (256, 2, 128)


async def test_two_processes_share_the_sessions() -> None:
    """More streams than one core reads: each session is played once, and the lag reports of both."""
    count = 1100
    async with truth_server(steady(2, 0.3, 0.05)) as server:
        rows, lag = await played(LoadJob(server.url, singles(count), Pace(concurrency=count), whole=60.0), processes=2)
    assert lag.processes == 2
    assert sorted(row.session for row in rows) == list(range(count))
    assert {row.error for row in rows} == {""}


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


async def test_closing_ends_everything_at_once() -> None:
    """No process and no connection is left when nobody wants the rows any more."""
    async with truth_server(steady(1000, 0.05, 0.05)) as server:
        before = children()
        rows = ProcessClient(1).run(LoadJob(server.url, singles(4), Pace(concurrency=4), whole=60.0), None)
        task = asyncio.ensure_future(anext(rows))
        while len(server.seen) < 4:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await rows.aclose()
        assert children() == before


async def test_no_sessions_no_rows() -> None:
    """An empty level is over at once."""
    rows, lag = await played(LoadJob("http://127.0.0.1:9/v1", (), Pace()))
    assert (rows, lag.processes) == ([], 0)
