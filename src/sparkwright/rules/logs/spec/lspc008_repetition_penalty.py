"""Repetition_penalty crashes the speculative path.

Detects: an illegal access when a request carries a repetition penalty.
Why: the penalty kernels of some speculative builds index with rows of the draft.
Evidence: reports that name the parameter and the crash.
Remedy: leave the penalty at 1.0.
References: field guide E125
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import near

CODE = "LSPC008"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "repetition_penalty crashes the speculative path"
CAUSE = "repetition-penalty-crashes-spec-path"
SIGNS = (
    near(
        r"repetition_penalty|repetition penalty|presence_penalty",
        r"illegal memory access|IllegalAddress|engine dies|engine died|server dies|crashes",
        sure=0.8,
        within=4,
        unless=r"SamplingParams\(",
    ),
)
FIX = (
    "send no repetition_penalty to this deployment: --override-generation-config '{{\"repetition_penalty\": 1.0}}'",
    "--generation-config vllm so that the checkpoint's default is not used",
)
EXPLAINS = ("spec-decode-crash-under-concurrency",)
