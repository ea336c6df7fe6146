"""The other engines' programs as processes: they serve, guard, and end as the real ones do."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from fakes.ports import free_port
from functional.simulator.process import HEAD_ADDRESS, SimulatorProcess, wait_until
from functional.tiny_gguf import write_tiny_gguf

Program = Callable[..., SimulatorProcess]
SIGKILLED, ABORTED = -signal.SIGKILL, -signal.SIGABRT


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Starts one; `env` goes to it alone."""
    started: list[SimulatorProcess] = []

    def run(*words: str, port: int = 0, **env: str) -> SimulatorProcess:
        simulator = SimulatorProcess(list(words), tmp_path / f"{len(started)}.log", env, port)
        started.append(simulator)
        return simulator.start()

    yield run
    for simulator in started:
        simulator.end()


@pytest.fixture
def sglang(program: Program, model_folder: Path) -> Callable[..., tuple[SimulatorProcess, SimulatorProcess]]:
    """Both ranks of two nodes; `worker` is the second one's environment."""

    def run(*flags: str, worker: dict[str, str] | None = None, **env: str) -> tuple[SimulatorProcess, SimulatorProcess]:
        meet = f"{HEAD_ADDRESS}:{free_port()}"
        same = [
            "sglang",
            "--model-path",
            str(model_folder),
            "--served-model-name",
            "tiny",
            "--tp-size",
            "2",
            "--nnodes",
            "2",
        ]
        same += ["--dist-init-addr", meet, "--enable-metrics", "--mem-fraction-static", "0.3", *flags]
        ports = free_port(), free_port()
        second = program(*same, "--node-rank", "1", "--port", str(ports[1]), port=ports[1], **env, **(worker or {}))
        return program(*same, "--node-rank", "0", "--port", str(ports[0]), port=ports[0], **env), second

    return run


def test_sglang_serves_from_two_ranks_and_stops_cleanly(
    sglang: Callable[..., tuple[SimulatorProcess, SimulatorProcess]],
) -> None:
    """Ready only with its own line; the worker's dummy server is up; after SIGTERM the head drains and kills itself."""
    head, worker = sglang()
    head.logs("The server is fired up and ready to roll!")
    assert head.get("/health").status_code == 200
    assert head.complete(model="tiny").json()["usage"]["completion_tokens"] == 4
    assert "sglang:generation_tokens_total" in head.get("/metrics").text
    assert (
        head.get("/model_info").json()["simulated"] and head.get("/get_server_info").json()["tensor_parallel_size"] == 2
    )
    worker.logs("Dummy health check server started")  # said before it binds the port, as SGLang does
    wait_until("its port", lambda: _takes(worker.port))
    assert worker.get("/health").status_code == 200
    head.kill(signal.SIGTERM)
    assert (head.exit_code(), worker.exit_code()) == (SIGKILLED, 0)
    assert "Remaining number of requests 0." in head.log and "Scheduler hit an exception" not in head.log


def test_sglang_s_ranks_die_together(sglang: Callable[..., tuple[SimulatorProcess, SimulatorProcess]]) -> None:
    """A lost rank is noticed while idle: the scheduler's exception, then the whole process tree is killed."""
    head, worker = sglang()
    head.logs("The server is fired up and ready to roll!")
    worker.kill()
    assert head.exit_code() == SIGKILLED
    assert "Scheduler hit an exception" in head.log


@pytest.mark.full
def test_sglang_s_hanging_capture_shows_an_empty_bar(
    sglang: Callable[..., tuple[SimulatorProcess, SimulatorProcess]],
) -> None:
    """Report 001: it begins, is at 0, and reports no more."""
    head, _ = sglang(SPARKWRIGHT_SIMULATOR_FAULT="freeze@graphs")
    head.logs("Capture cuda graph begin")
    wait_until("a bar", lambda: "| 0/" in head.log)
    assert "Capture cuda graph end" not in head.log and head.running.poll() is None


@pytest.mark.full
def test_sglang_refuses_nodes_of_unequal_memory(
    sglang: Callable[..., tuple[SimulatorProcess, SimulatorProcess]],
) -> None:
    """Both ranks end with code 1 or as the lost other half; the one with more memory gives the reason."""
    head, worker = sglang(worker={"SPARKWRIGHT_SIMULATOR_FREE_GIB": "60"})
    assert head.exit_code() == 1
    assert "RuntimeError: The memory capacity is unbalanced." in head.log
    assert worker.exit_code() != 0


def test_sglang_s_key_guards_all_but_health_and_metrics(program: Program, model_folder: Path, tmp_path: Path) -> None:
    """The key comes from the file, and is in no log."""
    file, port = tmp_path / "key.yaml", free_port()
    file.write_text('{"api-key": "hidden"}')
    one = program("sglang", "--model-path", str(model_folder), "--config", str(file), "--port", str(port), port=port)
    one.logs("The server is fired up and ready to roll!")
    assert one.get("/health").status_code == 200
    assert one.get("/model_info").status_code == 401
    answer = httpx.get(f"http://{HEAD_ADDRESS}:{port}/v1/models", headers={"Authorization": "Bearer hidden"})
    assert answer.status_code == 200 and "hidden" not in one.log


@pytest.fixture
def llama_pair(program: Program, tmp_path: Path) -> tuple[SimulatorProcess, SimulatorProcess]:
    """llama-server and the rpc-server that it calls."""
    lent, port = free_port(), free_port()
    worker = program("rpc-server", "-H", HEAD_ADDRESS, "-p", str(lent), "-c")
    worker.logs("Starting RPC server")
    wait_until("its port", lambda: _takes(lent))
    gguf = write_tiny_gguf(tmp_path / "tiny.gguf")
    words = ["-m", str(gguf), "--port", str(port), "--rpc", f"{HEAD_ADDRESS}:{lent}", "-ngl", "99", "-c", "8192"]
    head = program("llama-server", *words, "--metrics", port=port)
    head.logs("all slots are idle")
    return head, worker


def _takes(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HEAD_ADDRESS, port)) == 0


@pytest.mark.full
def test_llama_s_server_aborts_at_the_first_step_without_its_worker(
    llama_pair: tuple[SimulatorProcess, SimulatorProcess],
) -> None:
    """/health stays 200 while nothing is asked; then GGML_ABORT, which is SIGABRT."""
    head, worker = llama_pair
    assert head.complete().json()["usage"]["completion_tokens"] == 4
    assert "llamacpp:tokens_predicted_total 4.0" in head.get("/metrics").text
    worker.kill()
    worker.exit_code()
    assert head.get("/health").json() == {"status": "ok"}
    with pytest.raises(httpx.HTTPError):
        head.complete()
    assert head.exit_code() == ABORTED
    assert "Remote RPC server crashed or returned malformed response" in head.log


@pytest.mark.full
def test_llama_s_worker_outlives_its_head(llama_pair: tuple[SimulatorProcess, SimulatorProcess]) -> None:
    """It waits for the next client, and ends at SIGTERM."""
    head, worker = llama_pair
    head.kill(signal.SIGTERM)
    assert head.exit_code() == 0
    worker.logs("Client connection closed")
    assert worker.running.poll() is None
    worker.kill(signal.SIGTERM)
    assert worker.exit_code() == -signal.SIGTERM


def test_trtllm_s_ranks_serve_as_mpi_s_variables_place_them(
    program: Program, model_folder: Path, tmp_path: Path
) -> None:
    """Rank 0 serves, rank 1 never reads rank 0's files; figures only where the options file asks for them."""
    port, file = free_port(), tmp_path / "extra.yaml"
    file.write_text("return_perf_metrics: true\n")
    launch = ["trtllm-llmapi-launch", "trtllm-serve", str(model_folder), "--tp_size", "2", "--port", str(port)]
    limits = ["--host", HEAD_ADDRESS, "--max_batch_size", "4"]
    mpi = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_orte_hnp_uri": f"1.0;tcp://{HEAD_ADDRESS}:1"}
    absent = str(tmp_path / "of-rank-0-only.yaml")
    worker = program(*launch, *limits, "--extra_llm_api_options", absent, OMPI_COMM_WORLD_RANK="1", **mpi)
    words = [*launch, *limits, "--extra_llm_api_options", str(file)]
    head = program(*words, port=port, OMPI_COMM_WORLD_RANK="0", **mpi)
    head.ready()
    assert head.complete(model="tiny-qwen3").json()["usage"]["completion_tokens"] == 4
    assert "trtllm_generation_tokens_total" in head.get("/prometheus/metrics").text
    assert head.get("/metrics").json()[0]["simulated"]
    head.kill(signal.SIGTERM)
    assert (head.exit_code(), worker.exit_code()) == (0, 0)
