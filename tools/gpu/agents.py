"""Latency over the turns of an agent's loop: SGLang's RadixAttention and vLLM's prefix cache on one GPU, in one run.

    python tools/gpu/agents.py --model MODEL --config CONFIG --out OUT --sglang /opt/sglang/bin/python --vllm PYTHON

Both engines serve the same dimensions (CONFIG, --layers of it) with random weights and the tokenizer of MODEL, each
with a KV pool of --tokens tokens; both are started, then measured one after the other with agents.yaml. Before that
talk.py asks each for a streamed chat and a forced tool call. In OUT: the logs, what every command printed, the reports,
the runs and both metrics pages; exit 1 when a run is not valid. --simulator rehearses it without a GPU, simulated.
Needs src/ of this checkout on PYTHONPATH and sparkwright's dependencies; with an H200 about a quarter of an hour.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import wait_for_server

HERE = Path(__file__).parent
PORTS = {"sglang": 30000, "vllm": 8000}
ENVIRONMENT = {
    "sglang": {"FLASHINFER_DISABLE_VERSION_CHECK": "1", "SGLANG_ENABLE_JIT_DEEPGEMM": "0"},
    "vllm": {"VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_USE_DEEP_GEMM": "0"},
}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
CONTEXT, SEQUENCES, CHUNK = 32768, 16, 8192
LIMIT = 900.0
# A model of random weights would fill a tool call's arguments with white space up to the last token.
COMPACT = '{"backend":"xgrammar","disable_any_whitespace":true}'


def model_folder(args: argparse.Namespace) -> Path:
    """A folder with the tokenizer of --model and the dimensions of --config, with its vocabulary."""
    folder = args.out / "model"
    shutil.copytree(args.model, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.safetensors*"))
    small = json.loads((args.model / "config.json").read_text())
    made = json.loads(args.config.read_text())
    made["num_hidden_layers"] = args.layers or made["num_hidden_layers"]
    made |= {name: small[name] for name in ("vocab_size", "bos_token_id", "eos_token_id") if name in small}
    (folder / "config.json").write_text(json.dumps(made))
    return folder


def pool_bytes(tokens: int, folder: Path) -> int:
    """KV cache in 16 bits; a pool of this size needs no profile, which the other engine's start would falsify."""
    config = json.loads((folder / "config.json").read_text())
    return tokens * 4 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]


def command(args: argparse.Namespace, engine: str, folder: Path) -> list[str]:
    port = str(PORTS[engine])
    if args.simulator:
        return [
            sys.executable,
            "-m",
            "sparkwright.simulator",
            "serve",
            str(args.model),
            "--served-model-name",
            "m",
            "--port",
            port,
        ]
    if engine == "sglang":
        words = "" if args.whole else "--attention-backend triton --cuda-graph-backend-prefill disabled "
        words = f"-m sglang.launch_server {words}{args.sglang_flags} --sampling-backend pytorch --enable-metrics "
        words += "--enable-cache-report --constrained-json-disable-any-whitespace --tool-call-parser qwen25 "
        words += f"--cuda-graph-max-bs-decode {SEQUENCES} --mem-fraction-static 0.8 --chunked-prefill-size {CHUNK} "
        words += f"--max-total-tokens {args.tokens} --context-length {CONTEXT} --model-path"
        python = args.sglang
    else:
        words = "" if args.whole else "--attention-backend TRITON_ATTN "
        words = f"-m vllm.entrypoints.openai.api_server {words}--enable-prompt-tokens-details "
        words += f"--enable-auto-tool-choice --tool-call-parser hermes --max-num-seqs {SEQUENCES} "
        words += f"--max-num-batched-tokens {CHUNK} "
        words += f"--gpu-memory-utilization 0.4 --kv-cache-memory-bytes {pool_bytes(args.tokens, folder)} "
        words += f"--max-model-len {CONTEXT} --structured-outputs-config {COMPACT} --model"
        python = args.vllm
    more = f"--served-model-name m --load-format dummy --host 127.0.0.1 --port {port}"
    return [*shlex.split(python), *words.split(), str(folder), *more.split()]


@contextmanager
def served(args: argparse.Namespace, engine: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the server in a session of its own; all of its processes end with the block."""
    words = command(args, engine, folder)
    with (args.out / f"{engine}.log").open("wb") as log:
        log.write((shlex.join(words) + "\n").encode())
        log.flush()
        environ = {**os.environ, **OFFLINE, **({} if args.simulator else ENVIRONMENT[engine])}
        if not args.simulator:
            environ.pop("PYTHONPATH", None)
            environ |= dict([pair.split("=", 1) for pair in getattr(args, f"{engine}_env")])
        server = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True, cwd=args.out
        )
    try:
        yield server
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def run(args: argparse.Namespace, words: list[str], limit: float = LIMIT) -> int:
    """Runs a command; what it printed is appended to commands.txt. Its exit code, 124 when it took too long."""
    environ = {**os.environ, "HOME": str(args.out), "COLUMNS": "150"}
    with (args.out / "commands.txt").open("ab") as log:
        log.write(f"$ {shlex.join(words)}\n".encode())
        log.flush()
        try:
            code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, timeout=limit)
        except subprocess.TimeoutExpired:
            log.write(b"(too long)\n")
            return 124
        log.write(f"(exit {code.returncode})\n\n".encode())
    return code.returncode


def measure(args: argparse.Namespace, urls: dict[str, str]) -> int:
    """Talks to both, measures both, writes reports; 0 when the measurement is valid."""
    cli = [sys.executable, "-m", "sparkwright"]
    for engine, url in urls.items():
        code = run(args, [sys.executable, str(HERE / "talk.py"), url, "m"], 120.0)
        print(f"{engine}: talk.py exit {code}", flush=True)
    allow = ["--allow-simulated"] if args.simulator else []
    profile = ["--profile", str(args.profile)]
    codes = [run(args, [*cli, "bench", url, *profile, "--tag", engine, *allow]) for engine, url in urls.items()]
    print(f"bench: exit {codes}", flush=True)
    for engine, url in urls.items():
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as page:
            (args.out / f"{engine}-metrics.txt").write_bytes(page.read())
        run(args, [*cli, "runs", "export", engine, str(args.out / f"{engine}.json")])
    for ending in ("md", "html", "json"):
        run(args, [*cli, "report", *urls, "-o", str(args.out / f"agents.{ending}")])
    (args.out / "tables.md").write_text(tables(json.loads((args.out / "agents.json").read_text())))
    for words in args.then:
        print(f"{words}: exit {run(args, shlex.split(words))}", flush=True)
    return max(codes)


def tables(report: dict) -> str:
    """First token by turn, hit rates by the engines' own counters, prompt and answer by depth; a column an engine."""
    runs = {run["conditions"]["engine"]: run["levels"] for run in report["runs"]}
    mark = "**SIMULATED**\n\n" if any(run["simulated"] for run in report["runs"]) else ""
    names = [one["plan"]["name"] for one in next(iter(runs.values())) if not one["part"]]
    turns, depths = [name for name in names if "agent" in name], [name for name in names if "agent" not in name]
    return mark + "\n\n".join(
        [
            level_table(runs, "first token, median ms", turns, [f"turn {n}" for n in (1, 2, 5, 10)], first_token),
            level_table(runs, "prompt tokens from the cache, %, by /metrics", turns, [""], hit_share),
            level_table(
                runs, "most of the KV pool in use, %", turns, [""], lambda one: one["server"]["kv_cache_usage"] * 100
            ),
            level_table(
                runs, "prefill, tokens/s", depths, [""], lambda one: one["metrics"]["prefill"]["median"]["value"]
            ),
            level_table(
                runs, "decode, tokens/s", depths, [""], lambda one: one["metrics"]["decode"]["median"]["value"]
            ),
        ]
    )


def first_token(level: dict) -> float:
    return level["metrics"]["ttft"]["median"]["value"] * 1000


def kv_percent(level: dict) -> float:
    return 100 * level["server"]["kv_cache_usage"]


def hit_share(level: dict) -> float:
    known = level["server"]
    return 100 * known["prefix_cache_hits_total"] / known["prompt_tokens_total"]


def level_table(
    runs: dict[str, list[dict]], what: str, names: list[str], parts: list[str], of: Callable[[dict], float]
) -> str:
    """Rows: levels; columns: parts, an engine each; empty where an engine does not give the figure."""
    head = [f"{part} {engine}".strip() for part in parts for engine in runs]
    lines = [f"| {what} | {' | '.join(head)} |", "|---|" + "---:|" * len(head)]
    for name in names:
        cells = []
        for part in parts:
            for levels in runs.values():
                found = [one for one in levels if (one["plan"]["name"], one["part"]) == (name, part)]
                try:
                    cells.append(f"{of(found[0]):,.1f}")
                except (IndexError, KeyError, ZeroDivisionError):
                    cells.append("")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder with config.json and tokenizer.json")
    parser.add_argument("--config", type=Path, required=True, help="config.json with the dimensions")
    parser.add_argument("--layers", type=int, default=0, help="0: all")
    parser.add_argument("--tokens", type=int, default=131072, help="KV pool of each engine")
    parser.add_argument("--profile", type=Path, default=HERE / "agents.yaml")
    parser.add_argument("--out", type=Path, required=True)
    for engine in PORTS:
        parser.add_argument(f"--{engine}", default="python3", help=f"Python that has {engine}")
        parser.add_argument(f"--{engine}-env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--sglang-flags", default="", metavar="WORDS", help="more of its options")
    parser.add_argument("--start-only", action="append", choices=PORTS, help="so that its kernels are compiled later")
    parser.add_argument("--then", action="append", default=[], metavar="COMMAND", help="run while both still serve")
    parser.add_argument("--simulator", action="store_true")
    parser.add_argument("--whole", action="store_true", help="the engines have all of their kernels")
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main() -> int:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that both servers end too
    folder = model_folder(args)
    with ExitStack() as stack:
        chosen = args.start_only or list(PORTS)
        servers = {engine: stack.enter_context(served(args, engine, folder)) for engine in chosen}
        urls = {engine: f"http://127.0.0.1:{port}" for engine, port in PORTS.items()}
        for engine, server in servers.items():
            wait_for_server(urls[engine], server)
        print(f"ready: {', '.join(servers)}", flush=True)
        return 0 if args.start_only else measure(args, urls)


if __name__ == "__main__":
    sys.exit(main())
