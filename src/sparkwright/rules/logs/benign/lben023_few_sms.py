"""Inductor finds too few multiprocessors for one of its modes.

Detects: inductor's notice.
Why: the mode wants 68 multiprocessors, GB10 has 48; inductor takes another mode.
Evidence: the notice.
Remedy: none.
References: https://github.com/pytorch/pytorch/blob/main/torch/_inductor/utils.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN023"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "too few SMs for max_autotune_gemm"
CAUSE = "benign-not-enough-sms"
SIGNS = (
    line(r"not enough sms to use max_autotune_gemm", HINT),
    line(r"online softmax is disabled on the fly", HINT),
)
FIX = ()
EXPLAINS = ()
