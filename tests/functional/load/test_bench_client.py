"""The ground of `make bench-client`: the compiled server does what it states, and a row is read from its log."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from bench_client import ground, page, server
from bench_client.clients import CLIENTS
from bench_client.session import Results

from fakes.ports import free_port
from functional.load.playing import send_requests

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler: apt-get install gcc libc6-dev")


@pytest.fixture(scope="module", autouse=True)
def build_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compiled into a folder of the test's own."""
    folder = tmp_path_factory.mktemp("bench-client")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ground, "BUILD", folder)
        yield folder


@contextmanager
def running(log: Path, *options: str) -> Iterator[int]:
    port = free_port()
    argv = [ground.compiled("truth_server"), str(port), "--log", log, *options]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "ready\n"
    try:
        yield port
    finally:
        process.terminate()
        process.communicate()


def chat_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1/chat/completions"


async def test_what_it_was_asked_to_do(tmp_path: Path) -> None:
    """Its times are those of its options, and its log and our client agree on them."""
    log = tmp_path / "log"
    with running(log, "--ttft", "100", "--itl", "30", "--tokens", "10") as port:
        rows, lag = await send_requests(chat_url(port), count=4, streams=4)
    told = server.ServerFigures(port)
    server.read(log, told)
    # On a busy machine the first token is late, and the others follow it at once: the whole is never shorter
    assert told.streams == 4 and told.ttft_mean >= 100 and told.ttft_mean + 9 * told.per_token >= 100 + 9 * 30 - 5
    mean = 1000 * sum(row.first or 0 for row in rows) / 4
    assert told.ttft_mean - 5 <= mean <= told.ttft_mean + 1000 + 1000 * lag.most


async def test_its_traps(tmp_path: Path) -> None:
    """Several tokens in a chunk, errors and stalls, as its options state."""
    times = ("--ttft", "10", "--itl", "5", "--tokens", "12")
    options = (*times, "--per-chunk", "4", "--errors", "4", "--stall", "3", "3000")
    with running(tmp_path / "log", *options) as port:
        rows, _ = await send_requests(chat_url(port), count=4)
    assert [row.kind for row in rows] == ["", "", "", "http-500"]
    assert [row.output_tokens for row in rows[:3]] == [12] * 3 and max(len(row.reads.at) for row in rows[:3]) <= 3
    widest = [max((b - a for a, b in pairwise(row.reads.at)), default=0.0) for row in rows[:3]]  # late, a read has all
    assert widest[0] == max(widest) > 0.3


def test_both_of_our_clients_report_the_same(tmp_path: Path) -> None:
    """The plain C client and ours, as programs, on the same server."""
    told = {}
    with running(tmp_path / "log", "--ttft", "50", "--itl", "20") as port:
        words = [str(word) for word in (port, 8, 16, 10)]
        for name, argv in (
            ("plain", [ground.compiled("plain_client")]),
            ("ours", [sys.executable, ground.HERE / "ours.py"]),
        ):
            done = subprocess.run([*argv, *words], capture_output=True, text=True, check=True, timeout=60)
            told[name] = json.loads(done.stdout)
    for figures in told.values():
        # As above: a first token that is read late has the others right behind it
        assert figures["ttft_mean"] > 45 and figures["ttft_mean"] + 9 * figures["tpot_mean"] > 50 + 9 * 20 - 5
        assert figures["tokens"] == 160


def test_the_page_states_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Medians of the repeats, targets from the same session, and what failed with its reason."""
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    kept = Results(tmp_path / "results.json")
    for repeat, ttft in enumerate((52.0, 51.0, 90.0)):
        for number, client in enumerate(CLIENTS[:3]):
            figures = {
                "ttft_mean": ttft + number,
                "ttft_p99": 60.0,
                "true_mean": 50.0,
                "true_p99": 51.0,
                "cpu_1000": 0.01,
            }
            lag = {"p50": 0.0001, "p99": 0.002, "cores": 0.3}
            kept.put(
                f"{client.name} streams 256 {repeat}",
                {**figures, "start": 0.2, "others": 0.1, "lag": lag, "memory_mb": 50},
            )
    kept.put("guidellm streams 8 0", {"error": "RuntimeError: exit code 1"})
    page.write(Results(kept.path), [ground.LeftOut("aiperf", "did not install")])
    text = (tmp_path / "page.md").read_text()
    assert "| **sparkwright** | - / - / 53.0 | - / - / 3.00 | 60.0 | 9.00 | - / - / 0.010 | 0.20 |" in text
    assert "| TTFT mean - true, ms | 3.00 | 2.00 (plain C), 1.00 (a quarter of the best peer's) |" in text
    assert "- aiperf: did not install" in text and "- guidellm streams 8 0: RuntimeError: exit code 1" in text


def test_our_client_needs_little_memory(tmp_path: Path) -> None:
    """Guards the client's footprint; its start is measured by `make bench-client`."""
    with running(tmp_path / "log", "--ttft", "5") as port:
        argv = [sys.executable, ground.HERE / "ours.py", str(port), "1", "1", "1"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout)["memory_mb"] < 100
