"""Makes the real SGLang fail as it fails for users, one log a case, for `sparkwright diagnose` to read.

    VENV/bin/python tools/gpu/failures_sglang.py --models MODELS --out /tmp/failures [--only CASE ...]

MODELS as for failures.py. One GPU, which other programs may use at the same time; nothing comes from the internet. The
first line of each log is the command; paths are rewritten.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from failure_cases import FailureCase
from failures import models, placed, rewritten

TWO = "--tp-size 2 --nnodes 2 --dist-timeout 20"
GPUS = "--sampling-backend pytorch --mem-fraction-static 0.3 --max-total-tokens 65536"
CASES = [
    FailureCase("flag-unknown", "--enable-turbo-mode"),
    FailureCase("flag-removed", "--disable-piecewise-cuda-graph"),
    FailureCase("flag-of-vllm", "--max-model-len 32768"),
    FailureCase("flag-without-value", "--max-running-requests --enable-metrics"),
    FailureCase("value-kv-dtype", "--kv-cache-dtype fp9"),
    FailureCase("value-length", "--context-length 32kb"),
    FailureCase("value-graph-config", "--cuda-graph-config {decode:{backend:full}}"),
    FailureCase("backend-unknown", "--attention-backend triton2"),
    FailureCase("backend-not-for-gpu", "--attention-backend trtllm_mha"),
    FailureCase("tp-gpus", "--tp-size 2"),
    FailureCase("dp-gpus", "--dp-size 3"),
    FailureCase("context-over-model", "--context-length 1048576"),
    FailureCase("fraction-too-small", "--mem-fraction-static 0.01"),
    FailureCase("tool-parser-unknown", "--tool-call-parser qwen9"),
    FailureCase("reasoning-parser-unknown", "--reasoning-parser qwen9"),
    FailureCase("template-file-missing", "--chat-template /models/qwen3.jinja"),
    FailureCase("port-in-use", "--port 8099"),
    FailureCase("host-not-here", "--host 10.99.0.1"),
    FailureCase("model-folder-empty", model="/models/empty"),
    FailureCase("architecture-unknown", model="/models/architecture"),
    FailureCase("model-type-unknown", model="/models/model-type"),
    FailureCase("custom-code", model="/models/custom"),
    FailureCase("config-broken", model="/models/config-broken"),
    FailureCase("tokenizer-missing", model="/models/tokenizer-missing"),
    FailureCase("weights-missing", dummy=False),
    FailureCase("shard-missing", model="/models/shard-missing", dummy=False),
    FailureCase("shard-cut", model="/models/shard-cut", dummy=False),
    FailureCase("shape-mismatch", model="/models/shape", dummy=False),
    FailureCase("model-not-in-cache", model="Qwen/Qwen3-0.6B", environ={"HF_HUB_OFFLINE": "1"}, dummy=False),
    FailureCase("quantization-none", "--quantization awq"),
    FailureCase("speculation-no-draft", "--speculative-algorithm EAGLE3 --speculative-num-steps 3"),
    FailureCase("lora-missing", "--enable-lora --lora-paths sql=/models/sql-lora"),
    FailureCase("gpu-hidden", environ={"CUDA_VISIBLE_DEVICES": ""}),
    FailureCase("gloo-interface", environ={"GLOO_SOCKET_IFNAME": "enp1s0f9np9"}),
    FailureCase("head-unreachable", f"{TWO} --node-rank 1 --dist-init-addr 10.99.0.1:25000"),
    FailureCase("worker-never-comes", f"{TWO} --node-rank 0 --dist-init-addr 127.0.0.1:25001"),
    FailureCase("killed-at-start", kill_at="Load weight begin"),
]


def command_words(case: FailureCase, port: int) -> list[str]:
    """SGLang's words for a case: a small pool, so that neighbours have room."""
    words, more = case.words.split(), GPUS.split()
    if "--mem-fraction-static" in words:
        more = more[:2]
    more += ["--load-format", "dummy"] if case.dummy else []
    more += [] if "--port" in words else ["--port", str(port)]
    more += [] if "--host" in words else ["--host", "127.0.0.1"]
    return ["-m", "sglang.launch_server", "--model-path", case.model, *words, *more]


def record(out: Path, case: FailureCase, port: int, limit: float) -> None:
    """Start one, wait until it ends or the limit is over, and write its log."""
    words = command_words(case, port)
    told = [*(f"{name}={value}" for name, value in case.environ.items()), "python3", *words]
    text, lock = ["$ " + " ".join(told) + "\n"], threading.Lock()
    process = subprocess.Popen(
        [sys.executable, *map(placed, words)], env={"HF_HUB_OFFLINE": "1", **os.environ, **case.environ}, cwd="/",
        text=True, errors="replace", start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip

    def read() -> None:
        assert process.stdout
        for line in process.stdout:
            with lock:
                text.append(line)
            if case.kill_at and case.kill_at in line:
                kill_scheduler(process.pid)

    reader = threading.Thread(target=read)
    reader.start()
    began = time.monotonic()
    reader.join(limit)
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        reader.join(6)
    process.wait()
    with lock:
        (out / f"{case.name}.log").write_text(rewritten("".join(text)))
    print(f"{time.strftime('%T')} {case.name} {time.monotonic() - began:.0f} s", flush=True)


def kill_scheduler(session: int) -> None:
    listed = subprocess.run(["ps", "-s", str(session), "-o", "pid=,args="], capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        if "scheduler" in line:
            os.kill(int(line.split()[0]), signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], choices=[case.name for case in CASES])
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=75.0, help="seconds for a start that does not end by itself")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    models(given.models)
    listen = [sys.executable, "-m", "http.server", "8099", "--bind", "127.0.0.1"]
    blocker = subprocess.Popen(listen, stderr=subprocess.DEVNULL)
    chosen = [case for case in CASES if not given.only or case.name in given.only]
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda pair: record(given.out, pair[1], 8100 + 10 * pair[0], given.limit), enumerate(chosen)))
    blocker.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
