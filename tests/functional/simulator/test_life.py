"""Ranks that serve, stop, die, freeze and misbehave, as the real engine did in the captures or as faults ask."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from functional.simulator.conftest import Pair, Start
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess, wait_until
from functional.simulator.test_log_lines import plain_lines
from patience import PATIENCE

LONG = {"max_tokens": 16_000, "ignore_eos": True}
SLOW = {"SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1", "SPARKWRIGHT_SIMULATOR_STEP_MS": "5"}
FAULT = "SPARKWRIGHT_SIMULATOR_FAULT"


@contextmanager
def request_running(head: SimulatorProcess) -> Iterator[list[httpx.Response]]:
    """A long request in the background; its answer is there when the block ends."""
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(head.complete(PATIENCE, **LONG)))
    thread.start()
    running = 'vllm:num_requests_running{engine="0",model_name="tiny-qwen3"} 1.0'
    wait_until("a running request", lambda: running in head.get("/metrics").text)
    yield answers
    thread.join()


def test_two_ranks_serve_and_stop_cleanly(start_pair: Pair) -> None:
    """A request is answered; SIGTERM to the head ends both with code 0 and the recorded shutdown lines."""
    head, worker = start_pair()
    head.ready()
    assert head.complete().json()["usage"]["completion_tokens"] == 4
    head.kill(signal.SIGTERM)
    assert (head.exit_code(), worker.exit_code()) == (0, 0)
    want = plain_lines((CAPTURES / "shutdown.log").read_text(encoding="utf-8"))
    assert plain_lines(head.log)[-len(want) :] == want
    assert "maybe TCPStore server has shut down too early" in worker.log


def test_a_killed_worker_is_a_dead_engine_that_looks_healthy(start_pair: Pair) -> None:
    """Capture m1: the running request stays open, /health stays 200, then HTTP 500 and the head ends with code 0."""
    # A busy machine misses the 0.6 s in which it looks healthy in the other tests.
    head, worker = start_pair(head={**SLOW, "SPARKWRIGHT_SIMULATOR_DEAD_S": "8"})
    head.ready()
    with request_running(head) as answers:
        worker.kill()
        head.logs("NCCL WARN socketProgress: Connection closed by remote peer")
        assert head.get("/health").status_code == 200
        assert answers == []
    assert answers[0].status_code == 500
    assert answers[0].json()["error"]["type"] == "InternalServerError"
    assert head.exit_code() == 0


@pytest.mark.full
def test_a_killed_worker_leaves_the_recorded_lines(start_pair: Pair) -> None:
    """The log goes from NCCL's warning to `Finished server process`: each kind of line of capture m1, in its order."""
    head, worker = start_pair(head=SLOW)
    head.ready()
    with request_running(head):
        worker.kill()
    head.exit_code()
    kinds = [
        "NCCL WARN socketProgress", "WorkerProc hit an exception", "DistBackendError: NCCL error in",
        "Collective WorkNCCL", "failure detected by watchdog", "preparing to dump debug info",
        "taking the entire process down", "terminate called after", "Worker proc VllmWorker-0 died unexpectedly",
        "Dumping input data", "Dumping scheduler output", "Dumping scheduler stats", "encountered a fatal error",
        "AsyncLLM output_handler failed", "EngineDeadError", "Process EngineCore:", "Shutting down",
        "Application shutdown complete.", "Finished server process",
    ]  # fmt: skip
    recorded = (CAPTURES / "m1-head.log").read_text(encoding="utf-8")
    for text in (head.log, recorded):
        places = [text.find(kind) for kind in kinds]
        assert -1 not in places and places == sorted(places)
    assert '"POST /v1/completions HTTP/1.1" 500 Internal Server Error' in head.log


def test_a_stream_of_a_dead_engine_ends_with_an_error(start_pair: Pair) -> None:
    """The client gets an error object and [DONE] inside a 200 stream (capture killed)."""
    head, worker = start_pair(head=SLOW)
    head.ready()
    url, body = f"http://{HEAD_ADDRESS}:{head.port}/v1/completions", {"prompt": "x", "stream": True, **LONG}
    with httpx.stream("POST", url, json=body, timeout=60.0) as answer:
        found = answer.iter_lines()
        next(found)
        worker.kill()
        last = [line for line in found if line][-2:]
    assert answer.status_code == 200
    assert '"EngineCore encountered an issue' in last[0] and last[1] == "data: [DONE]"


def test_a_frozen_worker_hangs_requests_and_nothing_else(start_pair: Pair) -> None:
    """SIGSTOP: /health 200, requests hang, the shared-memory line comes; SIGCONT: the request goes on to its end."""
    head, worker = start_pair()
    head.ready()
    worker.kill(signal.SIGSTOP)
    with pytest.raises(httpx.ReadTimeout):
        head.complete(0.3)
    head.logs("No available shared memory broadcast block found in 60 seconds.")
    assert head.get("/health").status_code == 200
    worker.kill(signal.SIGCONT)
    assert head.complete().status_code == 200


@pytest.mark.full
def test_a_client_that_gives_up_on_a_frozen_engine_leaves_nothing_behind(start_pair: Pair) -> None:
    """Canaries that time out, streamed or not, must not pile up as waiting requests."""
    head, worker = start_pair()
    head.ready()
    worker.kill(signal.SIGSTOP)
    for stream in (False, True):
        with pytest.raises(httpx.ReadTimeout):
            head.complete(0.3, stream=stream)
    wait_until("no request left", lambda: _requests(head) == [0.0, 0.0])
    worker.kill(signal.SIGCONT)
    assert head.complete().status_code == 200


def _requests(head: SimulatorProcess) -> list[float]:
    text = head.get("/metrics").text
    return [float(n) for n in re.findall(r"^vllm:num_requests_(?:running|waiting){[^}]*} (\S+)$", text, re.MULTILINE)]


def test_a_dead_head_ends_its_worker(start_pair: Pair) -> None:
    """The worker reports that the store is gone and ends with code 0."""
    head, worker = start_pair()
    head.ready()
    head.kill()
    assert worker.exit_code() == 0
    assert "Did the remote server shutdown or crash?" in worker.log


@pytest.mark.full
def test_a_worker_that_dies_while_loading_ends_the_head(start_pair: Pair) -> None:
    """No endless wait: NCCL's lines, `Engine core initialization failed`, exit codes of both."""
    head, worker = start_pair(worker={FAULT: "die@load:exit=3"})
    assert (worker.exit_code(), head.exit_code()) == (3, 1)
    assert "Engine core initialization failed" in head.log
    assert "remote process exited or there was a network error" in head.log


@pytest.mark.parametrize("phase", ["join", "load", "compile", "kv", "graphs", "serve"])
def test_a_rank_can_die_at_each_phase(start: Start, phase: str) -> None:
    """The exit code is the one asked for, and the server was never up."""
    simulator = start(**{FAULT: f"die@{phase}:exit=7"})
    assert simulator.exit_code() == 7
    assert "Application startup complete." not in simulator.log


@pytest.mark.parametrize("phase", ["load", "kv"])
def test_out_of_memory_is_torchs(start: Start, phase: str) -> None:
    """torch.OutOfMemoryError inside vLLM's traceback, exit code 1."""
    simulator = start(**{FAULT: f"oom@{phase}"})
    assert simulator.exit_code() == 1
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in simulator.log
    assert "RuntimeError: Engine core initialization failed. See root cause above." in simulator.log


def test_a_start_that_freezes_reports_nothing_more(start: Start) -> None:
    """The log stops at the phase, the process lives, and SIGTERM still ends it."""
    simulator = start(**{FAULT: "freeze@load"})
    simulator.logs("Using AttentionBackendEnum")
    time.sleep(0.3)
    size = len(simulator.log)
    time.sleep(0.3)
    assert len(simulator.log) == size and simulator.running.poll() is None
    simulator.kill(signal.SIGTERM)
    assert simulator.exit_code() == 0


def test_a_simulator_can_die_after_n_requests(start: Start) -> None:
    """Two answers arrive whole, then the process ends with the code asked for."""
    simulator = start(**{FAULT: "die_after=2:exit=5"}).ready()
    assert [simulator.complete().status_code for _ in range(2)] == [200, 200]
    assert simulator.exit_code() == 5


@pytest.mark.full
def test_an_engine_can_freeze_after_n_requests(start: Start) -> None:
    """The next request hangs while /health is 200."""
    simulator = start(**{FAULT: "freeze_after=1"}).ready()
    assert simulator.complete().status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        simulator.complete(0.3)
    assert simulator.get("/health").status_code == 200


@pytest.mark.full
def test_a_worker_can_freeze_after_n_requests(start_pair: Pair) -> None:
    """`rank=1:` freezes the worker alone; the head sees a silent rank."""
    head, _ = start_pair(
        "--enforce-eager", worker={FAULT: "rank=1:freeze_after=1"}, head={FAULT: "rank=1:freeze_after=1"}
    )
    head.ready()
    assert head.complete().status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        head.complete(0.3)
    head.logs("No available shared memory broadcast block")


@pytest.mark.full
def test_a_leak_grows_the_process(start: Start) -> None:
    """Ten requests at 5 MB each make the process 50 MB larger, by its own metric and by /proc."""
    simulator = start(**{FAULT: "leak=5"}).ready()
    before = _resident(simulator)
    for _ in range(10):
        simulator.complete()
    wait_until("50 MB more", lambda: _resident(simulator) - before > 45e6)


def _resident(simulator: SimulatorProcess) -> int:
    return int(Path(f"/proc/{simulator.running.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_sigterm_can_be_ignored(start: Start) -> None:
    """Only SIGKILL ends it, as with a process stuck in the driver."""
    simulator = start(**{FAULT: "ignore_sigterm"}).ready()
    simulator.kill(signal.SIGTERM)
    time.sleep(0.2)
    assert simulator.complete().status_code == 200
    simulator.kill()
    assert simulator.exit_code() == -signal.SIGKILL


def test_faults_can_be_switched_while_it_runs(start: Start, tmp_path: Path) -> None:
    """The control file turns garbage on and off."""
    control = tmp_path / "control"
    simulator = start(SPARKWRIGHT_SIMULATOR_CONTROL=str(control)).ready()

    def answers(text: str) -> bool:
        return bool(simulator.complete().json()["choices"][0]["text"] == text)

    assert answers("(simulated)")
    for at, (fault, text) in enumerate([("garbage", "!!!!"), ("", "(simulated)")]):
        control.write_text(fault)
        os.utime(control, (at + 1, at + 1))
        as_told = partial(answers, text)
        wait_until(f"{text} after {fault!r}", as_told)


def test_a_slow_load_is_slow(start: Start) -> None:
    """slow_load multiplies what loading takes, and the log reports it."""
    simulator = start(
        "--load-format", "auto", SPARKWRIGHT_SIMULATOR_FAULT="slow_load=100", SPARKWRIGHT_SIMULATOR_WEIGHTS_GIB="3"
    )
    simulator.ready()
    assert "Loading weights took 220.00 seconds" in simulator.log


def test_the_loggers_line_comes_while_there_is_traffic(start: Start) -> None:
    """Lines with figures, one with zeros, then silence (vLLM's idle rule)."""
    simulator = start("--max-model-len", "16384", VLLM_LOG_STATS_INTERVAL="0.2").ready()
    simulator.complete(max_tokens=50, ignore_eos=True)
    idle = "Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Waiting: 0 reqs"
    simulator.logs(idle)
    time.sleep(0.6)
    found = [line for line in simulator.log.splitlines() if "loggers.py:271" in line]
    assert "Engine 000: Avg prompt throughput: " in found[0] and "Prefix cache hit rate: 0.0%" in found[0]
    assert len(found) > 1 and [idle in line for line in found].index(True) == len(found) - 1


@pytest.mark.full
def test_idling_costs_nothing(start_pair: Pair) -> None:
    """Two idle ranks use no measurable CPU."""
    head, worker = start_pair()
    head.ready()
    assert head.complete(PATIENCE).status_code == 200  # both are through with their start
    before: list[int] = []

    def is_settled() -> bool:
        last, before[:] = list(before), [_cpu_ticks(t) for t in (head, worker)]
        time.sleep(0.1)
        return last == before

    wait_until("the end of what a start and a request cost", is_settled)
    time.sleep(0.5)
    assert max(_cpu_ticks(t) - b for t, b in zip((head, worker), before, strict=True)) <= 2


def _cpu_ticks(simulator: SimulatorProcess) -> int:
    fields = Path(f"/proc/{simulator.running.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
