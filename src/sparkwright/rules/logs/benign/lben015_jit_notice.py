"""A kernel is compiled while serving.

Detects: the JIT monitor's warnings and its activation line.
Why: the first request of a new shape compiles a kernel and waits for it; the next ones do not. (Compilation that
  outlasts a time-out is another cause.)
Evidence: the warning.
Remedy: none; a persistent Triton cache folder makes it rare.
References: captures a-tiny-serve.log, m2-head.log; gb10.md E98 for the bad case
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN015"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "kernel compiled on first use"
CAUSE = "benign-jit-compile-notice"
SIGNS = (
    line(r"kernel jit compilation during inference", HINT),
    line(r"kernel jit monitor activated|is JIT-compiled; first run may take", HINT),
)
FIX = ()
EXPLAINS = ()
