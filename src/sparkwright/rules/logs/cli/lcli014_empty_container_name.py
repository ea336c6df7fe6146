"""The script's container name is empty.

Detects: docker exec that takes the command for the container's name.
Why: the variable with the name is empty or unset, so the next word moves into its place.
Evidence: Docker's `No such container` with the name of a program.
Remedy: Set the variable, and let scripts stop at unset ones.
References: field guide E 92
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LCLI014"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the script's container name is empty"
CAUSE = "container-variable-empty"
SIGNS = (
    line(
        r"No such container: (?P<program>pkill|bash|sh|ray|python3?|vllm|nvidia-smi|env|cat|ls|kill|sleep"
        r"|timeout)(?![\w.-])",
        CERTAIN,
    ),
)
FIX = (
    "docker ps --format '{{{{.Names}}}}'   # the name that the variable should have",
    "put `set -u` at the top of the script",
)
EXPLAINS = ()
