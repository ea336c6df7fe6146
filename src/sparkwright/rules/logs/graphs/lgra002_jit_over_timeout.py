"""JIT compilation outlasts the step's time limit.

Detects: a step that times out while workers compile a kernel.
Why: a shape that was not warmed up is compiled at its first use; on GB10's CPU that takes minutes, and after 300 s
  the engine is declared dead. It looks like a deadlock of NCCL.
Evidence: worker stacks in Triton's or TileLang's compiler while the engine waits; `JIT compilation during
  inference` shortly before the timeout.
Remedy: a longer limit, a cache that is kept, warm-up of long prompts.
References: vLLM utils/jit_monitor.py; vLLM pull request 41834, issue 41530; field guide E66, E98
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, line, near

CODE = "LGRA002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "JIT compilation outlasts the step's time limit"
CAUSE = "jit-compile-exceeds-step-timeout"
SIGNS = (
    near(
        r"make_(?:llir|cubin|ttgir|ttir|ptx) \(|\(triton/(?:backends/nvidia/)?compiler"
        r"|\(triton/runtime/jit|\(tilelang/jit",
        r"acquire_read \(|worker_busy_loop|get_response \(|shm_broadcast\.py:\d+\)|execute_model \("
        r"|sample_tokens \(",
        sure=LIKELY,
        within=25,
    ),
    near(
        r"JIT compilation during inference",
        r"timed out|EngineDeadError",
        sure=LIKELY,
        within=60,
    ),
    near(
        r"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS|execute[- _]model timeout",
        r"JIT compil|JIT stall|JIT kernel|first[- ]use|compiling|compiles",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"RPC call to (?:execute_model|sample_tokens) timed out",
        r"JIT compilation during|still compiling|make_cubin|cicc\b.{0,20}ptxas",
        sure=LIKELY,
        within=60,
    ),
    line(r"RPC call to (?:sample_tokens|execute_model) timed out", HINT),
    line(
        r"^(?=.*(?:compil|\bJIT\b|tilelang|triton)).*(?:RPC call to (?:execute_model"
        r"|sample_tokens) timed out|EngineDeadError|300 seconds|300 ?s\b)",
        LIKELY,
    ),
)
FIX = (
    "export VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=1800 on every node",
    (
        "keep TRITON_CACHE_DIR, TILELANG_CACHE_DIR and VLLM_CACHE_ROOT on a disk that outlives the container, one "
        "folder for each image"
    ),
    "send one request of every prompt length after the start, before the users come",
)
EXPLAINS = ("shm-spin-wait-cpu-heat-gb10", "cuda-graph-multinode-collective-deadlock")
