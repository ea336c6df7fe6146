"""A sparse MLA kernel does not take this model's shape.

Detects: shape checks of sparse MLA, its cache layout and its top-k.
Why: the kernels are written for DeepSeek's sizes (64 rope dimensions, 512 latent, 64 or 128 heads, some top-k
  sizes) and, on SM 12.x, for 99 KiB of shared memory and 48 multiprocessors.
Evidence: the check's text with the size that it wants.
Remedy: a kernel for that shape; flags do not help, except for an aliased config field.
References: vLLM csrc cache_kernels.cu and topk; vLLM pull request 53906; field guide E81, E82, E87
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN017"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a sparse MLA kernel does not take this model's shape"
CAUSE = "sm12x-sparse-mla-shape-unsupported"
SIGNS = (
    line(r"pe_dim must be 64\b"),
    line(r"(?:nope_dim must be a multiple of|rope_dim must be) \d+", LIKELY),
    line(r"persistent_topk (?:would oversubscribe|failed|supports k=|occupancy)", LIKELY),
    line(r"persistent_topk.{0,80}(?:coop|grid|smem|shared memory)", LIKELY),
    line(r"FLASHINFER_MLA_SPARSE_SM120 (?:does not support|only supports)", LIKELY),
    line(
        r"Unsupported sparse-MLA (?:prefill|decode) configuration|num_tokens <= 64\) must go through"
        r"|requires a sparse-MLA indexer"
    ),
    near(
        r"sparse[- _]mla|_sparse_mla_sm120",
        r"not instantiated|missing macro|no kernel for|no branch for",
        sure=LIKELY,
        within=4,
    ),
    line(r"\b704 exceeds 576\b"),
    line(r"topk ?[=:]? ?\d+.{0,30}no SM_?12\dx? bucket|no SM_?12\dx? bucket", LIKELY),
    line(r"Unsupported (?:num_heads_q|h_q|d_qk|head_dim_qk)\b", LIKELY),
    line(r"Expected 64 or 128 query heads, got \d+", POSSIBLE),
    near(
        r"forward_mha",
        r"NotImplementedError",
        r"MLA_SPARSE|sparse_sm120|sparse_mla",
        sure=LIKELY,
        within=30,
    ),
    line(r"sparse[- _]MLA.{0,60}(?:supports|expects|requires) (?:num_heads|topk|head|only)", LIKELY),
    line(
        r"[Uu]nsupported (?:head|shape|topk|num_heads|dim|page).{0,80}(?:sparse[ _]mla|mla_sparse|sm120)"
        r"|(?:sparse[ _]mla|MLA_SPARSE_SM120)\b.{0,80}(?:unsupported|not supported|requires"
        r"|only supports).{0,40}(?:head|shape|topk|dim|page|block)",
        LIKELY,
    ),
)
FIX = (
    "an image whose kernels know the model's layout (the model's recipe names it: {recipe})",
    "`704 exceeds 576`: --hf-overrides '{{\"qk_rope_head_dim\": 64}}'",
    ("persistent_topk past some length: a build that reroutes to top_k_per_row_decode, or a shorter --max-model-len"),
)
EXPLAINS = ()
