"""A Triton kernel needs more shared memory than SM 12.x has.

Detects: Triton's out-of-resource error for shared memory.
Why: default tiles are made for 160 to 228 KiB per block; SM 12.x has 99 KiB (101376 bytes). Without a tuned
  configuration for the device the default is taken. Host memory has nothing to do with it.
Evidence: `Required: N, Hardware limit: 101376`.
Remedy: smaller blocks: a tuned configuration, another backend, or a newer version.
References: Triton runtime/errors.py; SGLang pull request 28038; vLLM issue 46721
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN022"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a Triton kernel needs more shared memory than SM 12.x has"
CAUSE = "triton-shared-memory-exceeded-gb10"
SIGNS = (
    line(r"out ?of ?resources?:? .{0,20}shared memory"),
    line(r"Hardware limit: ?101376"),
    line(r"Required: ?\d{5,6},? Hardware limit: ?\d+", LIKELY),
    line(r"OutOfResources", POSSIBLE),
    line(r"uses too much shared data", LIKELY),
    line(
        r"Failed to set the allowed dynamic shared memory size|MaxDynamicSharedMemorySize.{0,80}(?:fail"
        r"|invalid|error)",
        LIKELY,
    ),
    near(
        r"shared[- ]memory(?! broadcast)|\bsmem\b",
        r"101376|99 ?KiB|99 ?KB\b|100 ?KB\b|block sizes?|num_stages",
        r"exceed|too (?:large|big|much)|more than|over the|OutOfResources|crash",
        sure=LIKELY,
        within=1,
    ),
    line(r"\d{5,6} bytes of shared memory|shared memory.{0,60}101376|101376.{0,40}shared", LIKELY),
    line(r"MaxDynamicSharedMemorySize", 0.7),
    line(
        r"(?:shared memory|smem|SMEM)\b.{0,60}\b(?:exceeds?|larger than|more than|over"
        r"|limit)\b.{0,40}\b(?:101376|99 ?K|100 ?K|102400|49152)|\b(?:101376|102400)\b.{0,40}(?:limit"
        r"|shared|exceed)",
        LIKELY,
    ),
)
FIX = (
    (
        "SGLang: tuned configs for the GPU: fused_moe_triton/configs/triton_*/E=*,N=*,device_name=NVIDIA_GB10*.json "
        "on every node"
    ),
    (
        "another attention backend (--attention-backend flashinfer), or --kv-cache-dtype auto where the FP8 variant "
        "is the large one"
    ),
    "a version that sizes its blocks by the device (SGLang pull requests 14311, 17908, 28038)",
)
EXPLAINS = ()
