"""A sampler or attention library is not used.

Detects: notices that an optional library is missing or not switched on.
Why: the engines have kernels of their own for these; speed differs by little.
Evidence: the notice.
Remedy: none.
References: https://github.com/vllm-project/vllm/blob/main/vllm/v1/sample/ops/topk_topp_sampler.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN031"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "fallback of an optional kernel library"
CAUSE = "benign-optional-kernel-fallback"
SIGNS = (
    line(r"flashinfer is (available, but it is not enabled|not available)\b.{0,60}falling back", HINT),
    line(r"falling back to the pytorch-native implementation of top-p", HINT),
    line(
        r"cannot use FA version \d .{0,60}defaulting to FA"
        r"|has no kernel for this linear layer type; using automatic|padding num_heads from \d+ to \d+",
        HINT,
    ),
    line(
        r"(flash[-_ ]?attn|xformers|causal_conv1d|flash-linear-attention|deep_?ep|pplx)\b.{0,40}(is not"
        r"|not) (installed|found).{0,80}(fall|using|slower)",
        HINT,
    ),
    line(r"the fast path is not available because one of the required library", HINT),
    line(r"failed to import from vllm\._(moe|qutlass|flashmla)", HINT),
)
FIX = ()
EXPLAINS = ()
