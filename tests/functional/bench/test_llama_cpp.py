"""`bench` against a real engine: llama.cpp's server on the CPU with random weights."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.ports import free_port
from functional.bench.conftest import BenchShell
from functional.test_llama_cpp import KEY, RECIPE, render_rank, served
from functional.tiny_gguf import write_tiny_gguf
from sparkwright.domain.recipe import Serving

pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
# llama.cpp shares the context out over its slots.
ROOMY = replace(RECIPE, serving=Serving(context=8192, sequences=2, batched_tokens=256))
LOOP = """
name: loop
title: A short loop
repeats: 1
deadline: 90s
levels:
  - name: agent
    agent: {turns: 3, system: 700, tools: 0, first: 300, output: 8, cached: 0.8, cold_twin: true}
    requests: 1
    warmup: 0
"""


async def measured(shell: BenchShell, tmp_path: Path, profile: str) -> tuple[dict[str, Any], str]:
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), free_port(), ROOMY)
    (shell.folder / "key").write_text(KEY)
    url = f"http://127.0.0.1:{spec.listens[0][1]}"
    async with served(spec, tmp_path / "log"):
        _, told, err = await asyncio.to_thread(shell.json, url, "--key-file", "key", "--profile", profile)
    assert "error" not in err, err
    return told["runs"][0], err


async def test_a_first_look(bench_shell: BenchShell, tmp_path: Path) -> None:
    """Engine, version and context are found; prompts have the asked length by its own /tokenize; no request fails."""
    run, err = await measured(bench_shell, tmp_path, bench_shell.workload())
    known = run["run"]["conditions"]
    assert (known["engine"], known["model"], known["simulated"]) == ("llama-cpp", "tiny", False), err
    assert known["max_context"] == 2048, "what the model was made for bounds it"
    assert known["tokenizer"] == "/tokenize of the server"
    for level in run["levels"]:
        assert (level["good"], level["errors"]) == (level["sent"], {})
        assert level["tokens"] == 8 * level["good"]
    assert not any("planned" in doubt for level in run["levels"] for doubt in level["doubts"])


@pytest.mark.full
async def test_the_cold_and_the_cached_loop(bench_shell: BenchShell, tmp_path: Path) -> None:
    """cache_prompt at work: at the last turn what was sent before is not computed again, and usage reports how much."""
    run, err = await measured(bench_shell, tmp_path, bench_shell.workload(LOOP))
    turns = {level["plan"]["shape"]["cold"]: level["metrics"] for level in run["levels"] if level["part"] == "turn 3"}
    assert set(turns) == {True, False}, err
    assert all(metrics["ttft"]["median"]["value"] > 0 for metrics in turns.values())
    cold, cached = (turns[how]["cached_share"]["median"]["value"] for how in (True, False))
    assert cold < 0.1 and cached > 0.5
