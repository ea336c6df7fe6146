"""Our client as a program, to be measured like the others: `ours.py PORT STREAMS REQUESTS TOKENS`, one JSON line.

All of it is on: usage, rows as the command gets them, the lag of the client itself.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparkwright.adapters.load.client import ProcessClient
from sparkwright.domain.run import Lag, LoadJob, Row, Session, Turn
from sparkwright.domain.workload import Pace


def load_job(port: int, streams: int, requests: int, tokens: int) -> LoadJob:
    words = " ".join(f"word{number % 10}" for number in range(256))
    body = {
        "model": "truth",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": tokens,
        "messages": [{"role": "user", "content": words}],
    }
    turn = Turn(json.dumps(body), "", "", output_tokens=tokens)
    sessions = tuple(Session(number, (turn,)) for number in range(requests))
    return LoadJob(f"http://127.0.0.1:{port}/v1/chat/completions", sessions, Pace(concurrency=streams), whole=600.0)


async def played(work: LoadJob) -> tuple[list[Row], Lag]:
    rows: list[Row] = []
    lag = Lag()
    async for heard in ProcessClient().run(work, None):
        if isinstance(heard, Row):
            rows.append(heard)
        else:
            lag = heard
    return rows, lag


def figures(rows: list[Row], lag: Lag) -> dict[str, Any]:
    good = [row for row in rows if not row.error and row.first is not None]
    ttft = sorted(1000.0 * (row.first or 0.0) for row in good)
    return {
        "ttft_mean": statistics.mean(ttft),
        "ttft_p50": ttft[len(ttft) // 2],
        "ttft_p99": ttft[int(0.99 * len(ttft))],
        "tpot_mean": 1000.0 * statistics.mean(per_token(row) for row in good),
        "tokens": sum(row.output_tokens or 0 for row in good),
        "failed": len(rows) - len(good),
        "lag": asdict(lag),
        "memory_mb": memory(),
    }


def per_token(row: Row) -> float:
    later = (row.output_tokens or 0) - row.reads.tokens[0]
    return (row.reads.at[-1] - row.reads.at[0]) / later if later else 0.0


def memory() -> float:
    """The most that this process and its largest worker held."""
    held = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]  # ru_maxrss knows who started us, too
    return (int(held) + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


if __name__ == "__main__":
    port, streams, requests, tokens = (int(word) for word in sys.argv[1:5])
    print(json.dumps(figures(*asyncio.run(played(load_job(port, streams, requests, tokens))))))
