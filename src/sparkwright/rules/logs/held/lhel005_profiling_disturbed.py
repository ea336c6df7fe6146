"""Another process gave memory back while vLLM was profiling.

Detects: vLLM's assertion that more memory is free after profiling than before it, or a negative estimate.
Why: the profile compares two readings of the device's free memory. A process that ends in between, or another
  engine's start on the same unified memory, makes the difference negative or too large.
Evidence: `Error in memory profiling` with the two figures.
Remedy: start one engine at a time, after the old one has given its memory back; or give the KV cache in bytes.
References: https://github.com/vllm-project/vllm/pull/35929; https://github.com/NVIDIA/xr-ai/pull/462
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, POSSIBLE, line, near

CODE = "LHEL005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "free memory rose while vLLM measured it"
CAUSE = "memory-profiling-disturbed"
SIGNS = (
    line(r"Error in memory profiling\. Initial free memory", CERTAIN),
    line(r"other processes sharing the same container release GPU memory while vLLM is profiling", CERTAIN),
    near(
        r"memory profiling|profiling race",
        r"concurrent(?:ly)?|two (?:engines|servers|instances)|negative",
        sure=POSSIBLE,
    ),
)
FIX = (
    "stop everything else on {node}, wait until `free -g` stands still, then start once more",
    "start engines that share a node one after the other, each after the other's `Application startup complete`",
    "--kv-cache-memory-bytes <bytes>   # skips the comparison; the free memory check remains",
)
EXPLAINS: tuple[str, ...] = ()
