"""A download waits for another one's lock.

Detects: the Hub's notices about a lock that somebody else holds.
Why: ranks that start on one shared folder download the same file; a killed process or an NFS share can leave a lock
  that nobody frees.
Evidence: `waiting to acquire lock` with the path.
Remedy: download once before the start; remove stale locks when no download runs.
References: gb10.md C4 step 3;
  https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/utils/_fixes.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LFIL012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "download waits for a lock in the cache"
CAUSE = "hf-download-lock-held"
SIGNS = (
    line(r"still waiting to acquire lock", LIKELY),
    line(r"(waiting|timed? ?out|timeout|failed to).{0,40}\block\b.{0,120}(\.locks/|\.lock\b)", LIKELY),
    line(r"the file lock '[^']{1,300}' could not be acquired", CERTAIN),
    line(r"race(s)? between ranks.{0,60}download|download.{0,60}races? between ranks", LIKELY),
)
FIX = (
    "pgrep -af 'hf download|vllm|sglang'   # is one at work?",
    "find ~/.cache/huggingface -name '*.lock' -mmin +60 -delete   # only when none is",
)
EXPLAINS = ()
