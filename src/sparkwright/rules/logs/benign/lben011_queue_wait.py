"""The engine waits a minute for a worker's answer.

Detects: vLLM's notice that no block is free for 60 s.
Why: workers that compile, warm up or load answer late, and each minute gives a line. Ten and more, with nothing
  else moving, are a hang.
Evidence: a single line, or some during the start.
Remedy: none during the start; with ten and more look at all ranks.
References: gb10.md E40; captures v4-1m-s6.log (four minutes of warm-up)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN011"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "one wait for shared memory blocks"
CAUSE = "benign-shm-broadcast-wait"
SIGNS = (line(r"no available shared memory broadcast block", HINT),)
FIX = ()
EXPLAINS = ()
