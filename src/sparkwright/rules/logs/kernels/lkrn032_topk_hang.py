"""FlashInfer's radix top-k hangs.

Detects: a sampler that never returns from FlashInfer's top-k.
Why: the multi-block radix kernel waits for blocks that are not scheduled together.
Evidence: a stack that stays in the radix top-k.
Remedy: a newer FlashInfer, or the sampler of torch.
References: FlashInfer pull request 3615; field guide E103
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LKRN032"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "FlashInfer's radix top-k hangs"
CAUSE = "flashinfer-radix-topk-hang"
SIGNS = (
    near(
        r"radix[ _-]?top[ _-]?k|RadixTopK|top_k_(?:renorm|mask)\w*",
        r"\bhangs?\b|hung\b|deadlock|spins?\b|wedge[sd]?\b|never returns",
        sure=LIKELY,
        within=4,
    ),
)
FIX = (
    "FlashInfer 0.6.16 or later (pull request 3615)",
    "export VLLM_USE_FLASHINFER_SAMPLER=0 until then",
)
EXPLAINS = ()
