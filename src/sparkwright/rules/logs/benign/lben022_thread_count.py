"""Threads of torch are reduced.

Detects: notices about thread numbers.
Why: workers share the cores, so each takes few.
Evidence: the notice.
Remedy: none.
References: captures m2-head.log
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN022"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "Torch threads reduced"
CAUSE = "benign-thread-count-notice"
SIGNS = (
    line(r"reducing torch parallelism from \d+ threads", HINT),
    line(r"setting OMP_NUM_THREADS environment variable for each process|is set; leaving Torch threads at", HINT),
)
FIX = ()
EXPLAINS = ()
