"""The first real load runs out of memory after a healthy start.

Detects: torch's out-of-memory error in a log that also says that the server was ready.
Why: memory that is only taken with requests (drafter buffers, long prefills, images, the sampler at full batch) was
  not reserved; the KV cache had taken the rest.
Evidence: the ready line and the error in one log.
Remedy: a smaller share for the KV cache.
References: gb10.md E71, E72
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, anywhere, near

CODE = "LSIZ012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "out of memory at a request, after a healthy start"
CAUSE = "runtime-oom-after-healthy-start"
SIGNS = (
    near(
        r"in (?:_process_engine_step|run_busy_loop|step_with_batch_queue|execute_model|sample_tokens|event_loop_\w+"
        r"|forward_batch_generation)\b",
        r"OutOfMemoryError|CUDA out of memory",
        sure=LIKELY,
        within=60,
    ),
    anywhere(r"Application startup complete|The server is fired up", r"OutOfMemoryError|CUDA out of memory", sure=HINT),
    near(r"first (?:real |long )?request|first prompt", r"CUDA out of memory|OutOfMemoryError| OOM\b", sure=LIKELY),
    near(
        r"as specified by kv_cache_memory_bytes config",
        r"CUDA out of memory|OutOfMemoryError",
        sure=POSSIBLE,
        within=2000,
    ),
)
FIX = (
    "--gpu-memory-utilization lower by 0.05 (SGLang: --mem-fraction-static); with a drafter on GB10 at most 0.78",
    "with --kv-cache-memory-bytes: a smaller value in steps of 2 GB",
    "--max-num-batched-tokens 2048   # smaller prefill steps",
)
EXPLAINS: tuple[str, ...] = ()
