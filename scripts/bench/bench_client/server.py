"""The ground-truth server for one measurement, and what its log reports."""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_client.ground import BUILD, compiled


@dataclass
class ServerFigures:
    """The server's figures by its own clock, ms. began: when its first request was read, seconds of CLOCK_MONOTONIC."""

    port: int
    ttft_mean: float = 0.0
    ttft_p99: float = 0.0
    per_token: float = 0.0
    began: float = 0.0
    cpu: float = 0.0
    streams: int = 0
    report: dict[str, Any] = field(default_factory=dict)


@contextmanager
def serving(core: int, ttft: float, between: float) -> Iterator[ServerFigures]:
    """Runs the server on its core while open; afterwards its reported figures are filled in."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        told = ServerFigures(probe.getsockname()[1])
    log = BUILD / "truth.log"
    times = ["--ttft", str(ttft), "--itl", str(between), "--log", str(log)]
    argv = ["taskset", "-c", str(core), str(compiled("truth_server")), str(told.port), *times]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    try:
        server.stdout.readline()
        yield told
    finally:
        server.terminate()
        told.report = json.loads(server.stdout.read() or "{}")
        server.wait()
    read(log, told)


def read(log: Path, told: ServerFigures) -> None:
    arrived: dict[int, int] = {}
    first: dict[int, int] = {}
    last: dict[int, tuple[int, int]] = {}
    for line in log.read_text().splitlines():
        request, event, at = (int(word) for word in line.split())
        if event < 0:
            arrived[request] = at
        else:
            first.setdefault(request, at)
            last[request] = (event, at)
    waits = sorted((at - arrived[request]) / 1e6 for request, at in first.items())
    if waits:
        told.ttft_mean, told.ttft_p99 = statistics.mean(waits), waits[int(0.99 * len(waits))]
        gaps = [(at - first[request]) / 1e6 / event for request, (event, at) in last.items() if event]
        told.per_token = statistics.mean(gaps) if gaps else 0.0
    told.began, told.streams = min(arrived.values(), default=0) / 1e9, len(first)
    told.cpu = float(told.report.get("cpu", 0.0))
