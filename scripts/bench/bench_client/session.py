"""One measurement after the other, alternating; each is saved as soon as it is done, so a stopped session goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_client.clients import BenchClient, ClientLoad
from bench_client.ground import BUILD, TEXT
from bench_client.server import ServerFigures, serving

TTFT, BETWEEN, TOKENS = 50.0, 20.0, 128
ROUNDS = 4  # requests of each stream
SERVER_CORE, CLIENT_CORE = 0, 1
RATE_STREAMS, RATE_SECONDS, WITHIN = 64, 3.0, 0.05
_LIMIT = 240.0
Result = dict[str, Any]


@dataclass
class Results:
    """The results of a session, by client, what was asked, and repeat."""

    path: Path = BUILD / "results.json"

    def __post_init__(self) -> None:
        self.results: dict[str, Result] = json.loads(self.path.read_text()) if self.path.exists() else {}

    def put(self, key: str, result: Result) -> None:
        self.results[key] = result
        partial = self.path.with_suffix(".part")
        partial.write_text(json.dumps(self.results, indent=1))
        partial.replace(self.path)

    def keyed(self, client: str, kind: str) -> list[tuple[str, Result]]:
        return [(key, one) for key, one in self.results.items() if key.startswith(f"{client} {kind} ")]

    def every(self, client: str, kind: str) -> list[Result]:
        return [one for _, one in self.keyed(client, kind) if "error" not in one]

    def of(self, client: str, kind: str, size: int) -> list[Result]:
        begin = f"{client} {kind} {size} "
        return [one for key, one in self.results.items() if key.startswith(begin) and "error" not in one]


def latency(client: BenchClient, streams: int) -> Result:
    """TTFT at so many streams; truth: what the server did in the same run."""
    load = (streams, ROUNDS * streams, TOKENS)
    return _measured(client, load, BETWEEN)


def throughput(client: BenchClient, rate: int) -> Result:
    """Measures `rate` token events a second over 64 streams. off: of the reported time per token, relative to the set
    one."""
    between = 1000.0 * RATE_STREAMS / rate
    tokens = max(50, int(RATE_SECONDS * rate / RATE_STREAMS))
    result = _measured(client, (RATE_STREAMS, RATE_STREAMS, tokens), between)
    return {**result, "off": abs(result["tpot_mean"] / between - 1.0)}


def _measured(client: BenchClient, asked: tuple[int, int, int], between: float) -> Result:
    out = BUILD / "out" / client.name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with _text() as text, serving(SERVER_CORE, TTFT, between) as told:
        load = ClientLoad(told.port, *asked, out, text)
        busy, began = _busy(), time.monotonic()
        stdout, cpu = _run(client, load)
        wall = time.monotonic() - began
        busy = _busy() - busy
    tokens = asked[1] * asked[2]
    figures = client.read(stdout, out)
    return {**figures, **_beside(told, began, wall), "cpu": cpu, "cpu_1000": 1000 * cpu / tokens,
            "others": max(0.0, (busy - cpu - told.cpu) / wall)}  # fmt: skip


def _beside(told: ServerFigures, began: float, wall: float) -> Result:
    return {
        "true_mean": told.ttft_mean,
        "true_p99": told.ttft_p99,
        "true_tpot": told.per_token,
        "answered": told.streams,
        "start": told.began - began,
        "wall": wall,
        "load": os.getloadavg()[0],
        "server": told.report,
    }


def _run(client: BenchClient, load: ClientLoad) -> tuple[str, float]:
    """stdout, and CPU seconds of the program and all that it started."""
    out, hub = load.out, {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"} if client.offline else {}
    environment = {**os.environ, **hub, "NO_COLOR": "1"}
    with (out / "stdout").open("w") as stdout, (out / "stderr").open("w") as stderr:
        pinned = ["taskset", "-c", str(CLIENT_CORE), "timeout", "-k", "5", str(_LIMIT), *client.argv(load)]
        process = subprocess.Popen(
            pinned, stdout=stdout, stderr=stderr, env=environment, cwd=out, stdin=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = ((out / "stderr").read_text() or (out / "stdout").read_text()).strip().splitlines()
        raise RuntimeError(f"exit code {process.returncode}: {' / '.join(said[-3:])[:300]}")
    return (out / "stdout").read_text(), used.ru_utime + used.ru_stime


def _busy() -> float:
    """CPU seconds that this machine has worked, all cores."""
    words = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(words[:3]) + sum(words[5:8])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _text() -> Iterator[str]:
    """llama-benchy fetches its text over http, once; then it has it in its cache."""
    port = 8125
    argv = ["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    server = subprocess.Popen(argv, cwd=TEXT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}/book.txt"
    finally:
        server.terminate()
        server.wait()
