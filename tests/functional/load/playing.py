"""Jobs for the tests of the load client, and how near to the truth a time has to be."""

import json
from collections.abc import Sequence
from typing import Any

from functional.load.truth import SeenRequest, Truth
from sparkwright.adapters.load.client import ProcessClient
from sparkwright.domain.command import Secret
from sparkwright.domain.run import Lag, LoadJob, Row, Session, Turn
from sparkwright.domain.workload import Pace


def chat_turn(number: int = 0, **more: Any) -> Turn:
    wanted = {"stream": True, "stream_options": {"include_usage": True}}
    body = {"model": "m", **wanted, "messages": [{"role": "user", "content": f"question {number}"}]}
    return Turn(json.dumps(body), "", "", **more)


def singles(count: int, times: Sequence[float] | None = None) -> tuple[Session, ...]:
    return tuple(Session(place, (chat_turn(place),), times[place] if times else None) for place in range(count))


async def played(job: LoadJob, key: Secret | None = None, processes: int = 1) -> tuple[list[Row], Lag]:
    """Every row and the lag."""
    heard = [one async for one in ProcessClient(processes).run(job, key)]
    rows = [one for one in heard if isinstance(one, Row)]
    lag = heard[-1]
    assert isinstance(lag, Lag) and len(heard) == len(rows) + 1
    return sorted(rows, key=lambda row: (row.session, row.turn)), lag


async def send_requests(url: str, count: int = 1, streams: int = 1, **more: Any) -> tuple[list[Row], Lag]:
    return await played(LoadJob(url, singles(count), Pace(concurrency=streams), **{"whole": 30.0, **more}))


def is_near(told: float | None, true: float, lag: Lag, server: Truth) -> bool:
    """Two programs on a busy machine: each reports how late it was at most, and nothing is nearer than that."""
    slack = 0.15 + lag.most + server.late
    return told is not None and true - slack <= told <= true + slack


def send_time(seen: SeenRequest, send: int) -> float:
    """The time when the server sent that step, counted from when it had read the request."""
    return seen.sends[send] - seen.received
