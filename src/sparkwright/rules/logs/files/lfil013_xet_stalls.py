"""A download by Xet stands still.

Detects: downloads of the Xet client that fail or hang.
Why: the Xet client keeps many parallel ranges and a chunk cache of its own; behind some proxies and on small
  machines it stands still at a fixed share, or takes much memory.
Evidence: Xet's error or the word beside a standstill.
Remedy: download without it.
References: gb10.md E79; https://github.com/huggingface/xet-core
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LFIL013"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "Xet download stalls"
CAUSE = "hf-xet-download-stalls"
SIGNS = (
    near(
        r"\bhf[-_]xet\b|\bxet (download|client|storage|transfer|backend)|\((via )?xet\)|cas-server\.xethub|xet_get",
        r"\bstall|\bhangs|freez|froze|stuck|timed? ?out|data processing error|cas client error|no progress",
        sure=LIKELY,
        within=2,
        unless=r"\b429\b",
    ),
    line(r"data processing error: cas service error|cas object error", CERTAIN),
)
FIX = (
    "HF_HUB_DISABLE_XET=1 hf download {model}",
    "rm -rf ~/.cache/huggingface/xet   # its chunk cache",
)
EXPLAINS = ()
