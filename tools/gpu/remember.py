"""Measures what a relaunch after `kill -9` keeps: weights in vLLM's weight cache, 100,000 tokens in its file tier.

    python tools/gpu/remember.py weights --model /dev/shm/qwen3-32b --tokenizer /models/tiny
    python tools/gpu/remember.py run --model /dev/shm/qwen3-32b --kv /dev/shm/kv --disk /var/tmp/kv \
        --python /opt/vllm/bin/python --out OUT

`weights` writes random weights with Qwen3-32B's dimensions (65.5 GB). `run` measures on one GPU, in this order: the
first start with both caches, a cold prompt, kill -9, relaunch and the same prompt; with --disk the same with the
tier's files on another file system; then the same start without caches. OUT gets one log a start and results.jsonl.
"""

import argparse
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PORT = 8400
HEALTH_OF_DAEMON = 8401
CONTEXT = 100_000
GIB = 1 << 30
LONGEST = 280.0
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_act": "silu",
    "hidden_size": 5120, "intermediate_size": 25600, "num_hidden_layers": 64, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000, "attention_bias": False, "tie_word_embeddings": False,
    "bos_token_id": 0, "eos_token_id": 2,
}  # fmt: skip
SERVE = ["--max-model-len", "110000", "--max-num-seqs", "4", "--max-num-batched-tokens", "8192"]
SERVE += ["--kv-cache-dtype", "fp8", "--gpu-memory-utilization", "0.92", "--served-model-name", "m"]


def layer_shapes() -> dict[str, list[int]]:
    """Names within one layer; norms have one dimension."""
    hidden, inner, width = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["head_dim"]
    queries, keys = CONFIG["num_attention_heads"] * width, CONFIG["num_key_value_heads"] * width
    return {
        "input_layernorm": [hidden], "post_attention_layernorm": [hidden],
        "self_attn.q_norm": [width], "self_attn.k_norm": [width],
        "self_attn.q_proj": [queries, hidden], "self_attn.k_proj": [keys, hidden],
        "self_attn.v_proj": [keys, hidden], "self_attn.o_proj": [hidden, queries],
        "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden], "mlp.down_proj": [hidden, inner],
    }  # fmt: skip


def file_plan() -> list[dict[str, list[int]]]:
    """Tensors of each file: one a layer, and one with the rest."""
    layers = [
        {f"model.layers.{n}.{name}.weight": shape for name, shape in layer_shapes().items()}
        for n in range(int(CONFIG["num_hidden_layers"]))
    ]
    table = [CONFIG["vocab_size"], CONFIG["hidden_size"]]
    rest = {"model.embed_tokens.weight": table, "lm_head.weight": table, "model.norm.weight": [CONFIG["hidden_size"]]}
    return [*layers, rest]


def write_weights(args: argparse.Namespace) -> int:
    """Checkpoint of random bfloat16 values; every layer repeats the same ones, norms are 1."""
    import numpy as np

    args.model.mkdir(parents=True, exist_ok=True)
    for path in args.tokenizer.glob("*token*"):
        shutil.copy(path, args.model)
    (args.model / "config.json").write_text(json.dumps(CONFIG, indent=1))
    noise = (np.random.default_rng(0).standard_normal(32 << 20, dtype=np.float32) * 0.02).view(np.uint32)
    values = memoryview((noise >> 16).astype(np.uint16)).cast("B")
    ones = memoryview(np.full(CONFIG["hidden_size"], 0x3F80, dtype=np.uint16)).cast("B")
    plan, index = file_plan(), dict[str, str]()

    def write(number: int) -> int:
        name = f"model-{number + 1:05d}-of-{len(plan):05d}.safetensors"
        header, at = dict[str, Any](), 0
        for tensor, shape in plan[number].items():
            size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            index[tensor], at = name, at + size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with (args.model / name).open("wb", buffering=0) as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for one in header.values():
                write_repeated(file, ones if len(one["shape"]) == 1 else values, one["data_offsets"])
        return at

    began = time.monotonic()
    with ThreadPoolExecutor(12) as pool:
        total = sum(pool.map(write, range(len(plan))))
    content = {"metadata": {"total_size": total}, "weight_map": index}
    (args.model / "model.safetensors.index.json").write_text(json.dumps(content))
    print(f"{total / 1e9:.1f} GB in {time.monotonic() - began:.1f} s", flush=True)
    return 0


def write_repeated(file: Any, content: memoryview, span: list[int]) -> None:
    left = span[1] - span[0]
    while left:
        left -= file.write(content[: min(left, len(content))])


class EngineServer:
    """One vllm command; its log, and when each line came."""

    def __init__(self, args: argparse.Namespace, name: str, words: list[str]) -> None:
        self.name, self.began = name, time.monotonic()
        self.lines: list[tuple[float, str]] = []
        argv = [args.python, "-m", "vllm.entrypoints.cli.main", *words]
        self.file = (args.out / f"{name}.log").open("w")
        self.file.write("$ vllm " + " ".join(words) + "\n")
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            text = line.decode(errors="replace")
            self.lines.append((time.monotonic(), text))
            self.file.write(text)
            self.file.flush()

    def wait_http(self, port: int) -> float:
        """Seconds from the start until /health answers. Raises RuntimeError when the process ends before."""
        while time.monotonic() - self.began < LONGEST:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as reply:
                    if reply.status == 200:
                        return time.monotonic() - self.began
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"{self.name}: not ready within {LONGEST:.0f} s")

    def has(self, text: str) -> bool:
        return any(text in line for _, line in self.lines)

    def kill(self) -> float:
        """kill -9 to every process of the command; the moment."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return time.monotonic()


def prompt() -> list[int]:
    numbers = random.Random(42)
    return [numbers.randrange(10, 7900) for _ in range(CONTEXT)]


def ask_long_prompt() -> dict[str, Any]:
    """The long prompt: seconds to the first token and to the last, and the text."""
    body = {"model": "m", "prompt": prompt(), "max_tokens": 16, "temperature": 0, "ignore_eos": True, "stream": True}
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    began, first, text = time.monotonic(), 0.0, ""
    with urllib.request.urlopen(request, timeout=LONGEST) as reply:
        for line in reply:
            if line.startswith(b"data: {"):
                first = first or time.monotonic() - began
                text += json.loads(line[6:])["choices"][0]["text"]
    return {"first_token_s": round(first, 2), "all_s": round(time.monotonic() - began, 2), "text": text}


def metrics() -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    wanted = ("prefix_cache", "offload", "prompt_tokens_by_source", "prompt_tokens_cached")
    return [x for x in lines if not x.startswith("#") and any(w in x for w in wanted) and "_bucket" not in x]


def tier_files(folder: Path) -> tuple[int, int]:
    """Files of the tier and their bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*.bin")]
    return len(sizes), sum(sizes)


def wait_flushed(folder: Path) -> dict[str, Any]:
    began, last = time.monotonic(), (-1, 0)
    while time.monotonic() - began < 60:
        time.sleep(2)
        now = tier_files(folder)
        if now == last and now[0]:
            break
        last = now
    return {"files": last[0], "gb": round(last[1] / 1e9, 2), "waited_s": round(time.monotonic() - began, 1)}


def left_in_memory() -> list[str]:
    """Remove what a killed engine leaves in /dev/shm, as large as the first tier; its names."""
    found = sorted(Path("/dev/shm").glob("vllm_offload_*"))
    for path in found:
        path.unlink()
    return [path.name for path in found]


def offload_flags(root: Path, gib: int) -> list[str]:
    tiers = [{"type": "fs", "root_dir": str(root)}]
    extra = {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": gib * GIB, "secondary_tiers": tiers}
    config = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra}
    return ["--kv-transfer-config", json.dumps(config)]


class RelaunchSteps:
    """The measured steps; every result is written as it comes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.common = [str(args.model), *SERVE, "--port", str(PORT), "--host", "127.0.0.1"]
        self.cached = ["--load-format", "ipc_cache"]
        self.servers: list[EngineServer] = []

    def note(self, what: str, **values: Any) -> None:
        found = {"what": what, **values}
        print(json.dumps(found), flush=True)
        with (self.args.out / "results.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")

    def serve(self, name: str, *flags: str) -> EngineServer:
        self.servers.append(EngineServer(self.args, name, ["serve", *self.common, *flags]))
        return self.servers[-1]

    def start(self, name: str, *flags: str, killed_at: float = 0.0) -> EngineServer:
        """A start up to /health, with what its log tells about loading and compiling."""
        server = self.serve(name, *flags)
        ready = server.wait_http(PORT)
        since = time.monotonic() - killed_at if killed_at else ready
        told = {x: [line.strip()[-160:] for _, line in server.lines if x in line][:1] for x in TOLD}
        self.note(
            name, ready_s=round(ready, 2), since_kill_s=round(since, 2), told={k: v for k, v in told.items() if v}
        )
        return server

    def with_caches(self) -> None:
        preload = ["preload", "--model", str(self.args.model), *SERVE[:-2], "--weight-cache-health-port"]
        daemon = EngineServer(self.args, "preload", [*preload, str(HEALTH_OF_DAEMON)])
        try:
            self.note("preload", ready_s=round(daemon.wait_http(HEALTH_OF_DAEMON), 2))
            self.kill_and_return("cached", self.args.kv, first=True)
            if self.args.disk:
                began = time.monotonic()
                shutil.copytree(self.args.kv, self.args.disk)
                os.sync()
                shutil.rmtree(self.args.kv)
                Path("/proc/sys/vm/drop_caches").write_text("1\n")
                self.note("moved to disk", seconds=round(time.monotonic() - began, 1))
                self.kill_and_return("disk", self.args.disk, first=False)
        finally:
            daemon.kill()

    def kill_and_return(self, name: str, root: Path, first: bool) -> None:
        """Start, ask and kill -9 if this is the first; relaunch and ask the same again."""
        flags = [*self.cached, *offload_flags(root, self.args.cpu_gib)]
        killed_at = 0.0
        if first:
            server = self.start(f"{name}-first", *flags)
            self.note(f"{name}: cold prompt", **ask_long_prompt())
            self.note(f"{name}: flushed", **wait_flushed(root), metrics=metrics())
            killed_at = server.kill()
            self.note(f"{name}: left by the killed engine", files=left_in_memory())
        server = self.start(f"{name}-relaunch", *flags, killed_at=killed_at)
        answered = ask_long_prompt()
        self.note(f"{name}: same prompt after relaunch", **answered, metrics=metrics())
        self.note(f"{name}: prompt again, from the GPU", **ask_long_prompt())
        server.kill()
        left_in_memory()

    def without(self) -> None:
        """Warm compile cache wanted: a first start that had to compile does not count as a relaunch."""
        server = self.start("plain-first")
        if server.has("Compiling a graph") or self.args.twice:
            server = self.start("plain-relaunch", killed_at=server.kill())
        self.note("plain: prompt", **ask_long_prompt())
        server.kill()


TOLD = ("Loading weights took", "Model loading took", "Mapped", "torch.compile", "Graph capturing finished",
        "init engine", "Available KV cache memory", "GPU KV cache size", "weight cache daemon")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    args.out.mkdir(parents=True, exist_ok=True)
    for folder in filter(None, (args.kv, args.disk)):
        shutil.rmtree(folder, ignore_errors=True)
    args.kv.mkdir(parents=True)
    steps, failed = RelaunchSteps(args), 0
    for step in (steps.with_caches, steps.without):
        try:
            step()
        except (RuntimeError, OSError, ValueError) as error:
            steps.note("failed", step=step.__name__, error=f"{type(error).__name__}: {error}")
            failed = 1
        for server in steps.servers:
            if server.process.poll() is None:
                server.kill()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("weights", "run"))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, help="folder with the tokenizer's files")
    parser.add_argument("--kv", type=Path, default=Path("/dev/shm/kv"), help="folder of the file tier")
    parser.add_argument("--disk", type=Path, help="the same files on a disk, for another relaunch")
    parser.add_argument("--cpu-gib", type=int, default=16, help="host memory of the first tier")
    parser.add_argument("--twice", action="store_true", help="relaunch without caches even after a warm first start")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the engine")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    return write_weights(args) if args.what == "weights" else run(args)


if __name__ == "__main__":
    sys.exit(main())
