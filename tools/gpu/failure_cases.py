"""The cases of failures.py: how users' starts and requests fail.

Model paths and a few others lie in failures.py's own folder; the logs show them as here.
"""

from dataclasses import dataclass, field
from typing import Any

MOUNTED = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=$SIZE tmpfs $AT && exec "$@"', "sh"]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
NAMELESS = ["setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups"]


@dataclass(frozen=True)
class FailureCase:
    """One start. environ is in the log's command, hidden does not: it is how the machine was."""

    name: str
    words: str = ""
    model: str = "/models/tiny"
    environ: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)
    prefix: list[str] = field(default_factory=list)
    kill_at: str = ""
    limit: int = 100
    dummy: bool = True


TWO = "--tensor-parallel-size 2 --nnodes 2 --master-port 25000 --distributed-timeout-seconds 30"
SPECULATE = '--speculative-config {"method":"%s","num_speculative_tokens":3}'
SIDE_BY_SIDE = [
    FailureCase("flag-unknown", "--enable-turbo-mode"),
    FailureCase("flag-misspelt", "--gpu-memory-utilisation 0.8"),
    FailureCase("flag-removed", "--guided-decoding-backend xgrammar --swap-space 4"),
    FailureCase("flag-without-value", "--max-num-seqs --enforce-eager"),
    FailureCase("value-kv-dtype", "--kv-cache-dtype fp9"),
    FailureCase("value-length", "--max-model-len 32kb"),
    FailureCase("value-utilization", "--gpu-memory-utilization 90"),
    FailureCase("value-seqs-zero", "--max-num-seqs 0"),
    FailureCase("value-json", "--compilation-config {cudagraph_mode:FULL}"),
    FailureCase("value-json-key", '--speculative-config {"method":"ngram","num_spec_tokens":3}'),
    FailureCase("backend-unknown", "--attention-backend TRITONN_ATTN"),
    FailureCase("backend-not-for-model", "--attention-backend FLASHMLA"),
    FailureCase(
        "batch-below-context", "--max-num-batched-tokens 1024 --max-model-len 8192 --no-enable-chunked-prefill"
    ),
    FailureCase("tp-heads", "--tensor-parallel-size 3"),
    FailureCase("pp-gpus", "--pipeline-parallel-size 4"),
    FailureCase("dp-gpus", "--data-parallel-size 2 --enforce-eager"),
    FailureCase("context-over-model", "--max-model-len 1M"),
    FailureCase("tool-parser-unknown", "--enable-auto-tool-choice --tool-call-parser qwen9"),
    FailureCase("tool-parser-missing", "--enable-auto-tool-choice"),
    FailureCase("reasoning-parser-unknown", "--reasoning-parser qwen9"),
    FailureCase("template-file-missing", "--chat-template /models/qwen3.jinja"),
    FailureCase("port-in-use", "--port 8099"),
    FailureCase("host-not-here", "--host 10.99.0.1"),
    FailureCase("ray-not-installed", "--distributed-executor-backend ray"),
    FailureCase("model-not-in-cache", model="Qwen/Qwen3-0.6B", environ={"HF_HUB_OFFLINE": "1"}, dummy=False),
    FailureCase(
        "hub-unreachable",
        model="Qwen/Qwen3-0.6B",
        environ={"HF_ENDPOINT": "https://hub.invalid"},
        hidden={"HF_HUB_OFFLINE": "0"},
        dummy=False,
    ),
    FailureCase("model-folder-empty", model="/models/empty"),
    FailureCase("architecture-unknown", model="/models/architecture"),
    FailureCase("model-type-unknown", model="/models/model-type"),
    FailureCase("custom-code", model="/models/custom"),
    FailureCase("config-broken", model="/models/config-broken"),
    FailureCase("tokenizer-missing", model="/models/tokenizer-missing"),
    FailureCase("weights-missing", model="/models/tiny", dummy=False),
    FailureCase("shard-missing", model="/models/shard-missing", dummy=False),
    FailureCase("shard-cut", model="/models/shard-cut", dummy=False),
    FailureCase("shard-pointer", model="/models/shard-pointer", dummy=False),
    FailureCase("shape-mismatch", model="/models/shape", dummy=False),
    FailureCase("quantization-none", "--quantization awq"),
    FailureCase("quantization-other", "--quantization awq_marlin", model="/models/fp8"),
    FailureCase("speculation-method", SPECULATE % "turbo"),
    FailureCase("speculation-no-head", SPECULATE % "mtp"),
    FailureCase("gpu-hidden", environ={"CUDA_VISIBLE_DEVICES": ""}),
    FailureCase("gpu-number", environ={"CUDA_VISIBLE_DEVICES": "3"}),
    FailureCase("open-files", "--enforce-eager", prefix=["sh", "-c", 'ulimit -n 40; exec "$@"', "sh"]),
    FailureCase("gloo-interface", "--enforce-eager", environ={"GLOO_SOCKET_IFNAME": "enp1s0f9np9"}, limit=60),
    FailureCase(
        "host-ip-elsewhere", "--enforce-eager --distributed-timeout-seconds 9", environ={"VLLM_HOST_IP": "10.99.0.1"}
    ),
    FailureCase("master-unreachable", f"{TWO} --node-rank 1 --master-addr 10.99.0.1 --headless"),
    FailureCase("worker-never-comes", f"{TWO.replace('25000', '25001')} --node-rank 0 --master-addr 127.0.0.1"),
    FailureCase("node-rank", f"{TWO} --node-rank 2 --master-addr 127.0.0.1"),
]
ALONE = [
    FailureCase("weights-too-large", "--max-model-len 4096 --enforce-eager", model="/models/large"),
    FailureCase("kv-too-small", "--kv-cache-memory-bytes 1G --max-model-len 40960 --enforce-eager", model="/models/8b"),
    FailureCase("kv-none", "--gpu-memory-utilization {tight} --enforce-eager", model="/models/8b"),
    FailureCase("warmup-oom", "--kv-cache-memory-bytes {most} --max-num-seqs 1024 --enforce-eager", model="/models/8b"),
    FailureCase("disk-full", prefix=MOUNTED, hidden={"SIZE": "128k", "AT": "/cache", "XDG_CACHE_HOME": "/cache"}),
    FailureCase("cache-not-writable", prefix=NOBODY, hidden={"HOME": "/root-owned"}),
    FailureCase("user-without-name", prefix=NAMELESS, hidden={"HOME": "/home-1234", "USER": "", "LOGNAME": ""}),
    FailureCase("lora-missing", "--enable-lora --lora-modules sql=/models/sql-lora"),
    FailureCase("no-linker", "--enforce-eager", hidden={"PATH": "/empty", "TRITON_CACHE_DIR": "/triton"}),
    FailureCase(
        "shm-full", "--distributed-executor-backend mp", prefix=MOUNTED, hidden={"SIZE": "64k", "AT": "/dev/shm"}
    ),
    FailureCase("killed-at-start", "--enforce-eager", kill_at="Starting to load model"),
]
HELD = FailureCase("memory-held", "--gpu-memory-utilization 0.9")
SERVER = FailureCase("requests", "--enforce-eager --served-model-name tiny --max-model-len 2048 --api-key sk-abc")
PLAIN = FailureCase("template-missing", "--enforce-eager --served-model-name tiny", model="/models/template-missing")
HELLO = {"model": "tiny", "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "request-model": ("/v1/chat/completions", "sk-abc", HELLO | {"model": "Qwen/Qwen3-8B"}),
    "request-too-long": (
        "/v1/chat/completions",
        "sk-abc",
        HELLO | {"messages": [{"role": "user", "content": "What is the weather? " * 700}]},
    ),
    "request-max-tokens": ("/v1/chat/completions", "sk-abc", HELLO | {"max_tokens": 4096}),
    "request-no-key": ("/v1/chat/completions", "", HELLO),
    "request-wrong-key": ("/v1/models", "sk-xyz", {}),
    "request-tools": ("/v1/chat/completions", "sk-abc", HELLO | {"tools": [WEATHER], "tool_choice": "auto"}),
    "request-picture": (
        "/v1/chat/completions",
        "sk-abc",
        HELLO | {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, PICTURE]}]},
    ),
    "request-embeddings": ("/v1/embeddings", "sk-abc", {"model": "tiny", "input": "Hello"}),
    "request-schema": (
        "/v1/chat/completions",
        "sk-abc",
        HELLO | {"structured_outputs": {"regex": "(unclosed"}},
    ),
}
