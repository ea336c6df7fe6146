"""The simulator's log, line by line, against the recorded ones: same speakers, sources and words; only figures
differ."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.simulator.conftest import Pair, Start
from functional.simulator.process import CAPTURES

NOT_OURS = re.compile(
    r"ulimit of|TileLang|Triton kernel JIT|fp8 attention|scaling factor|NvFp4|ModelOpt|NVFP4|Weight-only FP4|"
    r"w1_weight_scale_2|MoEPrepare|HTTP/1\.1|resource_tracker|warnings\.warn"
)
"""Recorded lines of that machine, of kernels and of quantized layers, which the simulator does not have."""


FIGURE = re.compile(r"\[[\w.]+\.(?:py|cpp):\d+\]|-?\d[\d.,]*")


def strip_figures(line: str) -> str:
    """The line without pids, times, figures, addresses and paths; the source file and its line number stay."""
    line = re.sub(r"^(Capturing CUDA graphs \([^)]*\)).*", r"\1", line)
    line = re.sub(r"(with config: |non-default args: ).*", r"\1", line)
    line = re.sub(r"(tcp|http)://\S+", "URL", line)
    line = re.sub(r"(?<!\w)'?/[\w./-]+", "PATH", line)
    line = re.sub(r"torch_aot_compile/\w+|torch_compile_cache/\w+", "CACHE", line)
    return FIGURE.sub(lambda m: m[0] if m[0].startswith("[") else "#", line).rstrip()


def plain_lines(text: str, last: str = "") -> list[str]:
    """The plain lines up to the one that contains `last`; a bar's redrawings count once."""
    out: list[str] = []
    for line in text.splitlines():
        if line.startswith("$") or NOT_OURS.search(line) or not line.strip() or "SIMULATED" in line:
            continue
        if not out or out[-1] != strip_figures(line):
            out.append(strip_figures(line))
        if last and last in line:
            break
    return out


def recorded(name: str, last: str = "") -> list[str]:
    return plain_lines((CAPTURES / name).read_text(encoding="utf-8"), last=last)


def test_one_node_starts_with_the_recorded_lines(start: Start) -> None:
    """Every line of capture a-tiny up to `Application startup complete.`, in order."""
    flags = ["--attention-backend", "TRITON_ATTN", "--enable-prefix-caching", "--max-model-len", "32768"]
    flags += ["--gpu-memory-utilization", "0.2", "--max-num-seqs", "64", "--reasoning-parser", "qwen3"]
    simulator = start(*flags, "--enable-auto-tool-choice", "--tool-call-parser", "hermes").ready()
    done = "Application startup complete."
    assert plain_lines(simulator.log, last=done) == recorded("a-tiny-serve.log", last=done)
    assert "SIMULATED: this is sparkwright's simulator" in simulator.log.splitlines()[0]


def test_two_nodes_start_with_the_recorded_lines(start_pair: Pair) -> None:
    """Head and worker print what head and worker printed in capture m1."""
    head, worker = start_pair()
    head.ready()
    done = "Application startup complete."
    assert plain_lines(head.log, last=done) == recorded("m1-head.log", last=done)
    assert plain_lines(worker.log) == recorded("m1-worker.log", last="Kernel JIT monitor")
    assert "SIMULATED" in worker.log.splitlines()[0]


def test_eager_mode_has_the_recorded_lines(start_pair: Pair) -> None:
    """No compilation, no graphs, vLLM's warnings about it: capture m2 without its lines about quantization."""
    head, _ = start_pair("--enforce-eager", "--kv-cache-dtype", "fp8")
    head.ready()
    done = "Application startup complete."
    assert plain_lines(head.log, last=done) == [
        x.replace("EP rank # ", "EP rank N/A, ").replace("MiniMaxM#ForCausalLM", "Qwen#ForCausalLM")
        for x in recorded("m2-head.log", last=done)
    ]


def test_a_missing_worker_is_waited_for_without_a_word(start_pair: Pair) -> None:
    """The head's log stops where capture m3 stops, and the head neither fails nor serves."""
    head, worker = start_pair(worker={"SPARKWRIGHT_SIMULATOR_FAULT": "freeze@join"})
    head.logs("hostname of the client socket")
    worker.end()
    with pytest.raises(subprocess.TimeoutExpired):
        head.exit_code(within=0.5)
    assert plain_lines(head.log) == recorded("m3-head-alone.log")


def test_nccl_on_the_wrong_interface_hangs_both(start_pair: Pair) -> None:
    """Both logs stop where captures m4 stop: the ranks have met but cannot talk."""
    head, worker = start_pair(worker={"SPARKWRIGHT_SIMULATOR_FAULT": "no_comm"})
    head.logs("NCCL version")
    with pytest.raises(subprocess.TimeoutExpired):
        head.exit_code(within=0.5)
    assert plain_lines(head.log) == recorded("m4-head.log")
    assert plain_lines(worker.log) == recorded("m4-worker.log")


@pytest.mark.parametrize(
    ("name", "flags", "path"),
    [
        ("f-max-len", ["--max-model-len", "400000"], None),
        ("f-bad-tp", ["--tensor-parallel-size", "3"], None),
        ("f-no-model", [], "/models/does-not-exist"),
        ("f-kv-too-small", ["--enforce-eager"], None),
        ("f-no-blocks", ["--enforce-eager", "--max-model-len", "4096"], None),
    ],
)
def test_a_refused_start_prints_the_recorded_traceback(
    start: Start, name: str, flags: list[str], path: str | None
) -> None:
    """The last lines and exit code 1 of each recorded refusal."""
    overhead = {"f-kv-too-small": "27.9", "f-no-blocks": "40"}.get(name)
    env = {"SPARKWRIGHT_SIMULATOR_OVERHEAD_GIB": overhead} if overhead else {}
    more = ["--gpu-memory-utilization", "0.2"] if overhead else []
    simulator = start(*flags, *more, path=path, **env)
    assert simulator.exit_code() == 1
    tail = plain_lines(simulator.log)
    want = recorded(f"{name}.log")
    trace = next(i for i, x in enumerate(want) if "Traceback" in x or "EngineCore failed to start" in x)
    assert tail[-(len(want) - trace) :] == want[trace:]


def test_memory_taken_by_others_ends_the_start(start: Start) -> None:
    """The check of free memory at start speaks vLLM's words."""
    simulator = start("--gpu-memory-utilization", "0.9", SPARKWRIGHT_SIMULATOR_FREE_GIB="100")
    assert simulator.exit_code() == 1
    assert "ValueError: Free memory on device cuda:0 (100.0/139.8 GiB) on startup is less than" in simulator.log


def test_shards_are_counted_while_they_load(start: Start, model_folder: Path) -> None:
    """Real weights: the total, a line per shard, and the time it took, in vLLM's words."""
    (model_folder / "model.safetensors.index.json").write_text(
        '{"metadata": {"total_size": 8e9}, "weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}'
    )
    simulator = start("--load-format", "auto", "--max-model-len", "4096").ready()
    bars = [line for line in simulator.log.splitlines() if line.startswith("Loading safetensors checkpoint shards")]
    assert [re.sub(r" \[.*", "", b).removeprefix("Loading safetensors checkpoint shards: ") for b in bars] == [
        "  0% Completed | 0/2",
        " 50% Completed | 1/2",
        "100% Completed | 2/2",
    ]
    assert "Checkpoint size: 7.45 GiB." in simulator.log and "Loading weights took" in simulator.log


def test_the_version_is_reported_and_marked() -> None:
    """--version names what is simulated; another subcommand is refused with code 2."""
    command = [sys.executable, "-m", "sparkwright.simulator"]
    told = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert told.startswith("0.21.0 ") and "simulated" in told
    assert subprocess.run([*command, "bench"], capture_output=True).returncode == 2


def test_a_taken_port_ends_the_start(start: Start) -> None:
    """The port is bound before the engine starts, so a taken one fails at once."""
    with socket.socket() as other:
        port = free_port()
        other.bind(("127.0.0.1", port))
        other.listen()
        simulator = start("--port", str(port))
        assert simulator.exit_code() == 1
    assert "OSError: [Errno 98] Address already in use" in simulator.log
