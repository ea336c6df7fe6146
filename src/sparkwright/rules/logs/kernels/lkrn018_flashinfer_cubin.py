"""FlashInfer has this kernel only as binaries for SM 10.x.

Detects: FlashInfer calls that end in a kernel which exists only as a binary.
Why: TRT-LLM generated kernels come as compiled binaries for SM 10.x; no JIT builds them for SM 12.x. Checks of
  names, shapes and types come before and look like the fault.
Evidence: `Missing TRTLLM-GEN kernel`, or `Unsupported architecture` after a row of shape errors.
Remedy: a path that is compiled for SM 12.x.
References: FlashInfer trtllm fmha runner; Blackwellboy/model-serving-minefield
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LKRN018"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "FlashInfer has this kernel only as binaries for SM 10.x"
CAUSE = "flashinfer-cubin-no-sm12x"
SIGNS = (
    line(r"Missing TRTLLM-GEN kernel", LIKELY),
    line(r"No kernel found for the given options", LIKELY),
    near(
        r"swa_topk_lens|swa_kv_cache|Expected 64 or 128 query heads|trtllm_batch_decode\w*mla",
        r"unsupported arch",
        sure=CERTAIN,
        within=10,
    ),
    near(
        r"flashinfer",
        r"\bcubins?\b|pre-?compiled",
        r"only.{0,20}sm_?100|no (?:sm_?12\d|kernel)|unsupported arch|can never run|do(?:es)? not (?:cover"
        r"|exist|contain)",
        sure=LIKELY,
        within=0,
    ),
    line(
        r"Unsupported architecture",
        POSSIBLE,
        unless=r"sparse decode|sparse prefill|deep_?gemm|\.hpp|fmha|SM_ARCH",
    ),
    line(
        r"(?:cubins?\b.{0,40}(?:not found|no|missing|unavailable|lack).{0,30}(?:sm_?12|SM ?12|GB10))"
        r"|no cubins? (?:for|on) (?:sm_?12|SM ?12|GB10)",
        LIKELY,
    ),
)
FIX = (
    "use the engine's SM 12.x path for this kernel (Triton, or the sm120 sparse MLA of vLLM pull request 41834)",
    "pip list | grep -i flashinfer   # flashinfer-python, -cubin and -jit-cache of one version that covers sm_121",
    "do not go on fixing shapes: the last check is the architecture",
)
EXPLAINS = ()
