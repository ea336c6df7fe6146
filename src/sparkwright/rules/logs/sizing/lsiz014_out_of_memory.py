"""A CUDA allocation failed, and nothing in the log says more about why.

Detects: torch's out-of-memory line (its allocator's, or CUDA's own error) at any time.
Why: weights, KV pool, activations, graphs and everything else on the node share one pool on a GB10; the line names the
  allocation that came last, not the one that is too large. What else stands in the log often tells: then that cause
  comes first.
Evidence: the line with `Tried to allocate`, the free and the total memory.
Remedy: see what the plan says of this node, what else holds memory there, and lower the fraction or the limits.
References: torch c10/cuda/CUDACachingAllocator.cpp (wording); seed 001 (services beside the engine); guide D4, F1.
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import line

_SURE = 0.45  # whatever else the log tells comes first
CODE = "LSIZ014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GPU's memory is used up"
CAUSE = "gpu-out-of-memory"
SIGNS = (
    line(r"torch(?:\.cuda)?\.OutOfMemoryError: CUDA out of memory", _SURE),
    line(r"CUDA error: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY", _SURE),
)
FIX = (
    "sparkwright plan {recipe} --why   # the node's ledger: what takes how much",
    "on each node: nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv; free -m",
    "lower --gpu-memory-utilization, --max-model-len or --max-num-seqs, and start again",
)
EXPLAINS = ("peer-rank-died", "rank-restart-race-tcpstore", "engine-ready-timeout-too-short")
