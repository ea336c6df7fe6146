"""Each client: how it is called for one measurement, and where it reports what it measured."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_client.ground import BUILD, HERE, PIP, TOKENIZER, WHEELS, compiled

PROMPT = 256


@dataclass(frozen=True)
class ClientLoad:
    """One measurement's request. out: an empty folder for the client's files. text: URL of a plain text."""

    port: int
    streams: int
    requests: int
    tokens: int
    out: Path
    text: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class BenchClient:
    """argv: of one measurement. read: TTFT mean and p99, time per token, ms, from its stdout and its files.

    peer: installed by that name; '' for what is ours. slow: left for last, and for few rates. offline: it takes a
    tokenizer from a folder when it is reported that there is no hub (aiperf then takes a hub's cache alone).
    """

    name: str
    title: str
    argv: Callable[[ClientLoad], list[str]]
    read: Callable[[str, Path], dict[str, Any]]
    peer: str = ""
    slow: bool = False
    rates: tuple[int, ...] = (80_000, 60_000, 40_000, 20_000)
    offline: bool = True


def _printed(stdout: str, _out: Path) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(stdout.strip().splitlines()[-1])
    return figures


def _words(load: ClientLoad) -> list[str]:
    return [str(number) for number in (load.port, load.streams, load.requests, load.tokens)]


def _plain(load: ClientLoad) -> list[str]:
    return [str(compiled("plain_client")), *_words(load)]


def _ours(load: ClientLoad) -> list[str]:
    return [sys.executable, str(HERE / "ours.py"), *_words(load)]


def _random(load: ClientLoad) -> list[str]:
    """The options that the benches of vLLM and SGLang share."""
    lengths = ["--random-input-len", str(PROMPT), "--random-output-len", str(load.tokens)]
    amount = ["--num-prompts", str(load.requests), "--max-concurrency", str(load.streams)]
    names = ["--base-url", load.url, "--model", "truth", "--tokenizer", str(TOKENIZER)]
    return [*names, *lengths, *amount, "--ready-check-timeout-sec", "0", "--disable-tqdm"]


def _vllm(load: ClientLoad) -> list[str]:
    program = BUILD / "peers" / "vllm" / "vllm" / "vllm-rs"
    kind = [
        "--backend",
        "openai-chat",
        "--endpoint",
        "/v1/chat/completions",
        "--dataset-name",
        "random",
        "--ignore-eos",
    ]
    result = ["--save-result", "--result-dir", str(load.out), "--result-filename", "result.json"]
    figures = ["--percentile-metrics", "ttft,tpot", "--metric-percentiles", "50,99"]
    return [str(program), "bench", "serve", *kind, *_random(load), *result, *figures]


def _vllm_read(_stdout: str, out: Path) -> dict[str, Any]:
    told = json.loads((out / "result.json").read_text())
    return {"ttft_mean": told["mean_ttft_ms"], "ttft_p99": told["p99_ttft_ms"], "tpot_mean": told["mean_tpot_ms"]}


_SGLANG = """
import importlib.util, sys
found = importlib.util.spec_from_file_location("_bench", sys.argv[1])
module = importlib.util.module_from_spec(found)
found.loader.exec_module(module)
module.run_argv(["sglang-bench", *sys.argv[2:]])
"""


def _sglang(load: ClientLoad) -> list[str]:
    (extension,) = (BUILD / "peers" / "sglang" / "sglang" / "srt" / "rust_extensions").glob("_bench*.so")
    kind = ["--backend", "sglang-oai-chat", "--dataset-name", "random-ids", "--random-range-ratio", "1.0"]
    more = ["--warmup-requests", "0", "--output-file", str(load.out / "result.json")]
    return [sys.executable, "-c", _SGLANG, str(extension), *kind, *_random(load), *more]


def _benchy(load: ClientLoad) -> list[str]:
    program = BUILD / "peers" / "llama-benchy" / "bin" / "llama-benchy"
    names = ["--base-url", f"{load.url}/v1", "--model", "truth", "--tokenizer", str(TOKENIZER), "--book-url", load.text]
    sizes = ["--pp", str(PROMPT), "--tg", str(load.tokens), "--concurrency", str(load.streams)]
    how = ["--runs", str(load.requests // load.streams), "--no-cache", "--latency-mode", "none", "--no-warmup"]
    rest = ["--skip-coherence", "--no-adapt-prompt", "--save-result", str(load.out / "result.json"), "--format", "json"]
    return [str(program), *names, *sizes, *how, *rest]


def _benchy_read(_stdout: str, out: Path) -> dict[str, Any]:
    (told,) = json.loads((out / "result.json").read_text())["benchmarks"]
    first = sorted(told["e2e_ttft"]["values"])
    per_token = statistics.mean(1000.0 / speed for speed in told["tg_req_throughput"]["values"])
    return {"ttft_mean": statistics.mean(first), "ttft_p99": first[int(0.99 * len(first))], "tpot_mean": per_token}


def _guidellm(load: ClientLoad) -> list[str]:
    program = BUILD / "peers" / "guidellm" / "bin" / "guidellm"
    return [
        *(str(program), "run", "--disable-console-interactive"),
        *("--backend", f"kind=openai_http,target={load.url},model=truth"),
        *("--profile", f"kind=concurrent,streams={load.streams}"),
        *("--constraint", f"kind=max_requests,count={load.requests}"),
        *("--tokenizer", f"kind=huggingface_auto,model={TOKENIZER}"),
        *("--data", f"kind=synthetic_text,prompt_tokens={PROMPT},output_tokens={load.tokens}"),
        *("--output", f"kind=json,path={load.out / 'result.json'}"),
    ]


def _guidellm_read(_stdout: str, out: Path) -> dict[str, Any]:
    (told,) = json.loads((out / "result.json").read_text())["benchmarks"]
    first = told["metrics"]["time_to_first_token_ms"]["successful"]
    between = told["metrics"]["inter_token_latency_ms"]["successful"]
    return {"ttft_mean": first["mean"], "ttft_p99": first["percentiles"]["p99"], "tpot_mean": between["mean"]}


def _genai(load: ClientLoad) -> list[str]:
    program = BUILD / "peers" / "genai-bench" / "bin" / "genai-bench"
    return [
        *(str(program), "benchmark", "--api-backend", "openai", "--api-base", load.url, "--api-key", "none"),
        *("--task", "text-to-text", "--api-model-name", "truth", "--model-tokenizer", str(TOKENIZER)),
        *("--traffic-scenario", f"D({PROMPT},{load.tokens})", "--num-concurrency", str(load.streams)),
        *("--iteration-type", "num_concurrency", "--max-requests-per-run", str(load.requests)),
        *("--max-time-per-run", "2", "--experiment-base-dir", str(load.out), "--experiment-folder-name", "result"),
    ]


def _genai_read(_stdout: str, out: Path) -> dict[str, Any]:
    (path,) = (out / "result").glob("D*.json")
    stats = json.loads(path.read_text())["aggregated_metrics"]["stats"]
    first, between = stats["ttft"], stats["tpot"]
    return {
        "ttft_mean": first["mean"] * 1000,
        "ttft_p99": first["p99"] * 1000,
        "tpot_mean": between["mean"] * 1000,
    }


def _aiperf(load: ClientLoad) -> list[str]:
    program = BUILD / "peers" / "aiperf" / "bin" / "aiperf"
    return [
        *(str(program), "profile", "--model", "truth", "--url", load.url, "--endpoint-type", "chat", "--streaming"),
        *("--tokenizer", str(TOKENIZER), "--concurrency", str(load.streams), "--request-count", str(load.requests)),
        *("--synthetic-input-tokens-mean", str(PROMPT), "--synthetic-input-tokens-stddev", "0"),
        *("--output-tokens-mean", str(load.tokens), "--output-tokens-stddev", "0", "--ui", "none"),
        *("--output-artifact-dir", str(load.out)),
    ]


def _aiperf_read(_stdout: str, out: Path) -> dict[str, Any]:
    (path,) = out.rglob("profile_export_aiperf.json")
    told = json.loads(path.read_text())
    first, between = told["time_to_first_token"], told["inter_token_latency"]
    return {"ttft_mean": first["avg"], "ttft_p99": first["p99"], "tpot_mean": between["avg"]}


_LOW = (10_000, 5_000, 2_000, 1_000)
CLIENTS = (
    BenchClient("plain", "plain C, poll (ours, to compare with)", _plain, _printed),
    BenchClient("sparkwright", "**sparkwright**", _ours, _printed),
    BenchClient("vllm", f"vLLM bench (Rust) {WHEELS['vllm'][0]}", _vllm, _vllm_read, "vllm"),
    BenchClient("sglang", f"SGLang bench (Rust) {WHEELS['sglang'][0]}", _sglang, _vllm_read, "sglang"),
    BenchClient(
        "benchy", f"llama-benchy {PIP['llama-benchy']}", _benchy, _benchy_read, "llama-benchy", rates=(20_000, *_LOW)
    ),
    BenchClient("guidellm", f"guidellm {PIP['guidellm']}", _guidellm, _guidellm_read, "guidellm", True, _LOW),
    BenchClient("genai", f"genai-bench {PIP['genai-bench']}", _genai, _genai_read, "genai-bench", True, _LOW),
    BenchClient("aiperf", f"aiperf {PIP['aiperf']}", _aiperf, _aiperf_read, "aiperf", True, _LOW, False),
)
