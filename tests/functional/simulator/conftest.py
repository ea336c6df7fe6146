"""Fixtures: single simulators and pairs of ranks; whatever a test leaves is ended."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess

Start = Callable[..., SimulatorProcess]
Pair = Callable[..., tuple[SimulatorProcess, SimulatorProcess]]


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-qwen3"
    folder.mkdir()
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", folder / "config.json")
    return folder


@pytest.fixture
def start(tmp_path: Path, model_folder: Path) -> Iterator[Start]:
    started: list[SimulatorProcess] = []
    numbers = itertools.count()

    def run(*flags: str, path: str | None = None, **env: str) -> SimulatorProcess:
        port = free_port()
        place = [] if "--headless" in flags else ["--host", HEAD_ADDRESS, "--port", str(port)]
        name = ["--served-model-name", "tiny-qwen3"]
        argv = ["serve", path or str(model_folder), *name, "--load-format", "dummy", *place, *flags]
        simulator = SimulatorProcess(argv, tmp_path / f"{next(numbers)}.log", env, port)
        started.append(simulator)
        return simulator.start()

    yield run
    for simulator in started:
        simulator.end()


@pytest.fixture
def start_pair(start: Start) -> Pair:
    """Head and worker, as in capture m1; `head` and `worker` are their environments."""

    def run(
        *flags: str, head: dict[str, str] | None = None, worker: dict[str, str] | None = None
    ) -> tuple[SimulatorProcess, SimulatorProcess]:
        ranks = ["--tensor-parallel-size", "2", "--nnodes", "2", "--master-addr", HEAD_ADDRESS]
        ranks += ["--master-port", str(free_port()), "--distributed-executor-backend", "mp"]
        limits = ["--gpu-memory-utilization", "0.3", "--max-model-len", "16384"]
        ranks += ["--attention-backend", "TRITON_ATTN", *limits, *flags]
        second = start(*ranks, "--node-rank", "1", "--headless", **(worker or {}))
        return start(*ranks, "--node-rank", "0", **(head or {})), second

    return run
