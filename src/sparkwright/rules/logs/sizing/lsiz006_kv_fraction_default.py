"""TensorRT-LLM gives 90 % of the free memory to the KV cache.

Detects: a KV cache of 40 GB and more that nobody asked for, or the question why memory is nearly full after the
  start.
Why: `kv_cache_free_gpu_memory_fraction` defaults to 0.9. It is no leak; on unified memory it leaves too little for
  the host.
Evidence: the size in the engine's line; the fraction in the configuration.
Remedy: a smaller fraction, or a number of tokens.
References: https://github.com/NVIDIA/TensorRT-LLM/issues/1400; gb10.md C4
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LSIZ006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the KV cache takes most of the free memory by default"
CAUSE = "kv-fraction-default-takes-most-memory"
SIGNS = (
    line(r"Allocate (?P<bytes>[4-9]\d{10}|\d{12}) bytes for k/v cache", POSSIBLE),
    near(
        r"Allocated (?:[4-9]\d|1\d\d)(?:\.\d+)? GiB for max tokens in (?:paged )?KV cache",
        r"out of memory| OOM\b|cudaErrorMemoryAllocation",
        sure=LIKELY,
        within=200,
    ),
    near(
        r"(?:kv_cache_)?free_gpu_mem(?:ory)?_fraction|KvCacheConfig",
        r" 0\.9\d?\b| 90 ?%|by default|default (?:of|is)|most of the|memory leak|all the memory",
        sure=LIKELY,
    ),
    near(
        r"TensorRT-LLM|trtllm|tritonserver",
        r"(?:KV|k/v) ?cache (?:takes|uses|occupies|allocates).{0,30}(?:9\d ?%|most|all|entire)",
        sure=LIKELY,
    ),
    line(
        r"free_gpu_memory_fraction\W{1,6}0\.9\b.{0,80}(?:default|unified|takes|GB)"
        r"|kv_cache_free_gpu_mem.{0,40}default.{0,60}(?:takes|memory)",
        0.7,
    ),
)
FIX = (
    (
        "kv_cache_config: {{free_gpu_memory_fraction: 0.5}}   # extra-llm-api-options; trtllm-serve "
        "--kv_cache_free_gpu_memory_fraction 0.5"
    ),
    "kv_cache_config: {{max_tokens: 131072}}   # or a fixed size",
)
EXPLAINS: tuple[str, ...] = ()
