"""Leftovers that Python reports at the end.

Detects: warnings of resource trackers and process groups at the end.
Why: processes that are stopped do not close semaphores and groups; the system does.
Evidence: the warning, after the end.
Remedy: none.
References: captures (a-tiny-serve.log, m1-head.log)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN021"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "leftovers at shutdown"
CAUSE = "benign-shutdown-leftovers"
SIGNS = (
    line(r"resource_tracker: there appear to be \d+ leaked", HINT),
    line(r"destroy_process_group\(\) was not called before program exit", HINT),
)
FIX = ()
EXPLAINS = ()
