"""CUDA graphs do not fit beside weights and KV cache.

Detects: an out-of-memory error during capture, in SGLang's and vLLM's wording.
Why: each captured size keeps its own buffers, and capture comes after the KV cache has taken its share. On GB10 the
  page cache can leave little truly free memory at that moment.
Evidence: SGLang's `Capture cuda graph failed` with out of memory; the trace through `capture_model`.
Remedy: fewer sizes, a smaller share, free page cache before the start.
References: gb10.md A1; sglang/srt/model_executor of 0.5.10 and 0.5.23
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LSIZ013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "CUDA graph capture runs out of memory"
CAUSE = "cuda-graph-capture-oom"
SIGNS = (
    line(r"Capture cuda graph failed: (?:CUDA )?(?:error: )?out of memory", CERTAIN),
    near(r"Capture cuda graph failed", r"out of memory|OutOfMemoryError", sure=LIKELY, within=6),
    near(
        r"in capture_model\b|in _capture_cudagraphs\b|Capturing batches",
        r"OutOfMemoryError|CUDA out of memory",
        sure=LIKELY,
        within=30,
    ),
)
FIX = (
    "--max-cudagraph-capture-size 32   # SGLang: --cuda-graph-max-bs 16",
    "--gpu-memory-utilization lower by 0.03 (SGLang: --mem-fraction-static 0.8)",
    "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # on {node}, before the start",
)
EXPLAINS = ("sampler-warmup-oom",)
