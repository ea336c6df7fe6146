"""Tensors freed while weights are repacked stay in torch's cache.

Detects: a load that runs out of memory while quantized weights are converted, with torch's cache far above what is
  allocated.
Why: `process_weights_after_loading` replaces tensors; the old ones stay reserved. On a discrete GPU a retry frees
  them, on unified memory the host starves or Ray kills the worker first.
Evidence: reserved far above allocated during the conversion; success with a release per module.
Remedy: a vLLM with PR 45179; no expandable segments; nothing else on the node while loading.
References: https://github.com/vllm-project/vllm/pull/45179; https://github.com/vllm-project/vllm/pull/44502
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, near

CODE = "LUMA015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "freed weights stay in torch's cache while loading"
CAUSE = "vllm-uma-cached-memory-not-released-at-load"
SIGNS = (
    near(
        r"process_weights_after_loading|convert_to_nvfp4_moe|repack|conversion|converted|weight[- _]?loading"
        r"|completed modules",
        r"empty_cache|caching allocator|not immediately freed|cached device memory|reserved.{0,20}allocated"
        r"|allocator.?retention|cache release|per-module release|no release",
        r" UMA\b|unified|GB10|\bSparks?\b|integrated|Edge devices|[Ss]hared GPU/CPU| OOM\b|thrash|starv",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"in process_weights_after_loading|in convert_to_\w+_moe_kernel_format|in prepare_\w*moe\w*_layer_for_marlin",
        r"OutOfMemoryError|CUDA out of memory|NODE_OUT_OF_MEMORY",
        sure=POSSIBLE,
        within=30,
    ),
    near(
        r"process_weights_after_loading",
        r"121\.\d+ GiB|119\.\d+ GiB",
        r"OutOfMemoryError|CUDA out of memory",
        sure=0.85,
        within=40,
    ),
    near(
        r"reserved but unallocated|empty_cache|cached (?:by )?(?:torch|PyTorch)|caching allocator",
        r"unified|\bUMA |GB10|\bSparks?\b",
        r"\bload(?:s|ing)? |after load|weights",
        sure=0.65,
        within=3,
    ),
)
FIX = (
    "upgrade vLLM to a release with PR 45179 (it gives cached memory back while loading on unified memory)",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False",
    "with Ray: RAY_memory_monitor_refresh_ms=0 on every node, or it kills the worker at the peak",
)
EXPLAINS = ("ray-memory-monitor-kills-worker",)
