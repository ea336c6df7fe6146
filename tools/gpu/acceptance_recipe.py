"""The recipe of acceptance.py and its profiles, by engine and by what it runs on."""

import argparse
import sys

NAME = "acceptance"
LARGE = "large"
DEEPSEEK = "deepseek-v4"
PORT = 8000
KEY = "ACCEPTANCE_KEY"
# A model of random weights would fill a tool call's arguments with white space up to the last token.
_COMPACT = {"backend": "xgrammar", "disable_any_whitespace": True}
# What lets the published wheels run without the kernels that are too large to carry or need a compiler.
FLAGS = {
    "vllm": {"attention-backend": "TRITON_ATTN", "structured-outputs-config": _COMPACT},
    "sglang": {
        "attention-backend": "triton",
        "sampling-backend": "pytorch",
        "cuda-graph-backend-prefill": "disabled",
        "constrained-json-disable-any-whitespace": True,
    },
}
# Ranks that share a GPU see each other's memory: vLLM's profile would count it, so the pool has a size. SGLang ends if
# the others take more than the fraction while it loads.
SHARED = {
    "vllm": ({"kv_cache_bytes": "1GiB"}, {}),
    "sglang": ({"memory_fraction": 0.4}, {"max-total-tokens": 65536}),
}
CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}


def recipe(args: argparse.Namespace) -> dict:
    """The recipe and its profiles; those that cannot start each fail at another point."""
    flags = {} if args.simulator else dict(FLAGS[args.engine])
    if args.cpu or args.whole:
        for name in ("attention-backend", "cuda-graph-backend-prefill"):
            flags.pop(name, None)
    if not list(args.model.glob("*.safetensors")):
        flags["load-format"] = "dummy"
    name = "simulator" if args.simulator and args.engine == "vllm" else args.engine
    engine = {"name": name, "version": args.engine_version, "runtime": "process"}
    flags |= dict(pair.split("=", 1) if "=" in pair else (pair, True) for pair in args.flag)
    memory: dict = {"memory_fraction": 0.3}
    if (args.share_gpu or args.pinned or args.cpu) and not args.simulator:
        memory, flags = {"memory_fraction": 0.1, **SHARED[args.engine][0]}, flags | SHARED[args.engine][1]
    serving = {"port": PORT, "context": 32768, "coherence": False, **memory}
    parsers = {"tool": "hermes" if args.engine == "vllm" else "qwen25"}
    if args.deepseek:
        serving, parsers, flags = deepseek(serving, flags)
    return {
        "name": NAME,
        "title": "A small model over two nodes, for acceptance",
        "model": {
            "path": DEEPSEEK if args.deepseek else args.model.name,
            "served_name": "tiny",
            "simulated": args.simulator,
        },
        "engine": engine | {"venv": sys.prefix if args.simulator else str(args.venv)},
        "nodes": args.count,
        "parallelism": {"tp": args.count},
        "serving": serving,
        "parsers": parsers,
        "env": dict(pair.split("=", 1) for pair in args.env) | (CPU if args.cpu else {}),
        "flags": flags,
        "profiles": {
            "wrong-value": {"serving": {"kv_dtype": "fp9"}},
            "wrong-flag": {"flags": {"no-such-flag": 1}},
            "too-long": {"serving": {"context": 262144}},
            "small-kv": {"serving": {"context": 131072, "kv_cache_bytes": "64MiB"}},
            "keyed": {"serving": {"expose": "fabric", "api_key_env": KEY}},
            "impatient": {"phases": {"rendezvous": {"stuck_after": "30s"}}},
            "thinks": {"parsers": {"reasoning": "qwen3"}},
            "ray": ray_settings(args),
            "large": large_model(args),
        },
    }


def deepseek(serving: dict, flags: dict) -> tuple[dict, dict, dict]:
    """DeepSeek-V4's cache and parsers; its attention has backends of its own, and few tokens a step warm up sooner."""
    more = {"context": 1048576, "sequences": 6, "batched_tokens": 512, "kv_dtype": "fp8", "memory_fraction": 0.45}
    if "kv_cache_bytes" in serving:
        more |= {"kv_cache_bytes": "8GiB"}
    names = ("tool", "reasoning", "tokenizer_mode")
    kept = {name: value for name, value in flags.items() if name != "attention-backend"}
    fixed = {"block-size": 256, "enforce-eager": True, "disable-custom-all-reduce": True}
    return serving | more, dict.fromkeys(names, "deepseek_v4"), kept | fixed


def ray_settings(args: argparse.Namespace) -> dict:
    """The real Ray of this interpreter in the rehearsal, with the simulator as the vLLM inside it."""
    if not args.simulator:
        return {"engine": {"name": "vllm-ray"}}
    program = [sys.executable, "-m", "sparkwright.simulator"]
    return {"engine": {"name": "vllm-ray", "entrypoint": program}, "model": {"simulated": False}}


def large_model(args: argparse.Namespace) -> dict:
    """MiniMax-M2.7's dimensions as NVFP4 on Marlin, weights random: memory and start-up of the real size."""
    return {
        "model": {"path": LARGE, "served_name": "large"},
        "serving": {"context": 196608, "batched_tokens": 8192, "memory_fraction": 0.82, "kv_dtype": "fp8"},
        "flags": {"enforce-eager": True}
        | ({} if args.simulator else {"load-format": "dummy", "moe-backend": "marlin"}),
    }
