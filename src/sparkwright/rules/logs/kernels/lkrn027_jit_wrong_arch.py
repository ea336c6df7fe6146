"""JIT compilation for SM 10.x only.

Detects: FlashInfer's JIT that finds no architecture to build for.
Why: the code path is limited to major version 10 (or 9); the GPU has 12, so the list of targets is empty. With 12
  in the list the toolkit is too old instead, which is another cause.
Evidence: `No supported CUDA architectures found for major versions [10]`.
Remedy: a path that exists for SM 12.x.
References: FlashInfer compilation_context.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LKRN027"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "JIT compilation for SM 10.x only"
CAUSE = "jit-targets-datacenter-blackwell-only"
SIGNS = (
    line(r"No supported CUDA architectures found for major versions? \[(?!.{0,30}\b12\b)"),
    near(
        r"get_nvcc_flags_list",
        r"RuntimeError|No supported CUDA arch",
        sure=LIKELY,
        within=4,
        unless=r"\[.{0,20}\b12\b",
    ),
    near(
        r"ninja: build stopped|FAILED: .{0,160}\.o\b",
        r"compute_100a|sm_100a|compute_103a",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"JIT compil|JIT-compil|JIT build|JIT-target",
        r"compute_100|sm_100a?\b|SM100",
        r"sm_12[01]|SM12[01x]|\bGB10\b",
        sure=LIKELY,
        within=3,
    ),
)
FIX = (
    "--moe-backend marlin --linear-backend marlin   # no JIT of SM 10.x kernels",
    "export FLASHINFER_CUDA_ARCH_LIST=12.1a TORCH_CUDA_ARCH_LIST=12.1a",
    "a FlashInfer and vLLM pair that routes SM 12.x to its own kernels",
)
EXPLAINS = ()
