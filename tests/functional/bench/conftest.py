"""Fixtures: the real command with a home of its own, simulators of vLLM at a set speed, and a small workload."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.ports import free_port
from functional.command import UserShell
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess

# Prefill 4,000 tokens/s, 10 ms a step: a cold prompt of 2,000 tokens takes half a second.
PACE = {
    "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1",
    "SPARKWRIGHT_SIMULATOR_STEP_MS": "10",
    "SPARKWRIGHT_SIMULATOR_PREFILL_TPS": "4000",
}
SMALL = """
name: small
title: A few short requests
repeats: 1
deadline: 60s
levels:
  - name: one
    single: {prompt: 64, output: 8}
    requests: 3
    warmup: 0
  - name: two
    single: {prompt: 96, output: 8}
    concurrency: 2
    requests: 4
    warmup: 1
"""
Start = Callable[..., SimulatorProcess]


class BenchShell(UserShell):
    """The command, what it prints, and what it keeps."""

    def workload(self, text: str = SMALL, name: str = "small.yaml") -> str:
        (self.folder / name).write_text(text)
        return f"./{name}"

    def json(self, *words: str, **environ: str) -> tuple[int, dict[str, Any], str]:
        code, out, err = self.run("bench", *words, "--json", **environ)
        assert out, err
        return code, json.loads(out), err

    def saved(self) -> list[dict[str, Any]]:
        code, out, err = self.run("runs", "list", "--json")
        assert code == 0, err
        found: list[dict[str, Any]] = json.loads(out)["runs"]
        return found


@pytest.fixture
def bench_shell(tmp_path: Path) -> Iterator[BenchShell]:
    home = tmp_path / "home"
    home.mkdir()
    made = BenchShell(home)
    yield made
    made.clean()


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Start]:
    """A simulator that is ready. Flags are vLLM's; keywords change its environment."""
    model = tmp_path / "tiny-qwen3"
    model.mkdir()
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", model / "config.json")
    started: list[SimulatorProcess] = []

    def start(*flags: str, **environ: str) -> SimulatorProcess:
        port = free_port()
        place = ["--host", HEAD_ADDRESS, "--port", str(port), "--enable-prompt-tokens-details"]
        argv = ["serve", str(model), "--served-model-name", "tiny-qwen3", "--load-format", "dummy", *place, *flags]
        one = SimulatorProcess(argv, tmp_path / f"twin-{port}.log", {**PACE, **environ}, port)
        started.append(one)
        return one.start().ready()

    yield start
    for one in started:
        one.end()


def endpoint_url(simulator: SimulatorProcess) -> str:
    return f"http://{HEAD_ADDRESS}:{simulator.port}"
