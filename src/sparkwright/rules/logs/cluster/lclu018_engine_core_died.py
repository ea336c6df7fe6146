"""The engine core died, and the server only says that it did.

Detects: vLLM's EngineDeadError.
Why: its cause stands in an earlier line of the engine core. Where there is none the process was killed from outside:
  by the kernel's OOM killer, earlyoom, Docker's memory limit or a person.
Evidence: no line of the engine core before the server's.
Remedy: read further up, then the kernel's log.
References: vllm/v1/engine/exceptions.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LCLU018"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the engine core died without a word of its own"
CAUSE = "engine-core-died"
SIGNS = (line(r"EngineDeadError: EngineCore encountered an issue", HINT),)
FIX = (
    "sudo journalctl -k -b | grep -i -E 'oom|killed process|xid'   # on the node of the engine core",
    "{ends}   # code 137: SIGKILL",
)
EXPLAINS = ()
