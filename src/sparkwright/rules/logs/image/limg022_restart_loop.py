"""A container is started again and again.

Detects: Docker's Restarting status and restart counters.
Why: a restart policy repeats a start that cannot succeed; of several ranks each rejoins a group that is dying. The
  reason stands in the log of the first failed start.
Evidence: `Restarting (1)` or a high count.
Remedy: stop it, read the first failure, use one orchestrated start.
References: gb10.md F4 (29 crash loops), E112
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, POSSIBLE, line

CODE = "LIMG022"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "container restarts in a loop"
CAUSE = "container-restart-loop"
SIGNS = (
    line(r"restarting \(\d+\) \d+ seconds? ago|restarting \(\d+\) (less|about)", POSSIBLE),
    line(r"\"?RestartCount\"?\W{1,4}([3-9]|\d\d+)\b", POSSIBLE),
    line(r"crash[- ]?loop(ed|ing|s|backoff)?\b", HINT),
)
FIX = (
    "docker update --restart no {container} && docker stop {container}",
    "docker logs {container} 2>&1 | sparkwright diagnose -",
)
EXPLAINS = ()
