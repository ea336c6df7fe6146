"""FlashMLA has no kernels for SM 12.x.

Detects: FlashMLA kernels that are called on SM 12.x.
Why: FlashMLA is compiled for SM 9.0a and 10.0f. SGLang's dsv4 backend calls it unconditionally; no variable leads
  around it.
Evidence: FlashMLA's own check, or `Unsupported architecture` under a FlashMLA frame.
Remedy: another engine build or backend.
References: FlashMLA csrc; seed 000; field guide E51
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LKRN016"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "FlashMLA has no kernels for SM 12.x"
CAUSE = "flashmla-unsupported-arch-sm12x"
SIGNS = (
    line(r"Unsupported architecture for sparse"),
    line(r"Sparse Attention Forward Kernel is only supported on SM"),
    line(r"Dense decode MLA is only supported on SM"),
    line(r"FlashMLA.{0,40}(?:is only supported on|requires (?:sm_|Hopper|Blackwell))"),
    near(
        r"flash_?mla|sparse_decode_fwd|sparse_prefill_fwd",
        r"Error: Unsupp|Unsupported arch|no kernel image|only (?:built|supported|compiled) (?:for|on)"
        r"|not supported on sm",
        sure=0.88,
        within=6,
    ),
    near(
        r"flash_?mla",
        r"sm_?12[01x]|\bGB10\b|DGX Spark",
        r"rejects|refuses|unsupported|no build|no kernel|has no |no support|crash",
        sure=LIKELY,
        within=0,
    ),
    line(r"_flashmla(?:_extension)?_C|FlashMLA is (?:not available|only supported)", 0.77),
    line(r"flash_?mla\w* (?:is |are )?(?:only (?:for |on |built for )?|needs |requires )sm_?(?:90|100)", 0.9),
    line(r"Selected backend .{0,80}FLASH_?MLA\w* is not valid.{0,120}compute capability", 0.85),
)
FIX = (
    "no flag repairs it for DeepSeek V4 on SGLang 0.5.12: serve it with vLLM's SM 12.x build ({recipe})",
    "SGLang 0.5.15 and later: export SGLANG_OPT_FLASHMLA_SPARSE_PREFILL=0",
    "vLLM: --attention-backend TRITON_MLA, or FLASHINFER_MLA_SPARSE_SM120 where the model is sparse",
)
EXPLAINS = ("flashinfer-cubin-no-sm12x",)
