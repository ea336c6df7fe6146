"""One rank has less free memory than SGLang allows.

Detects: SGLang's balance check with figures that are close to each other.
Why: SGLang wants at least 90 % of the other ranks' free memory on each. Page cache, a desktop or a service on one
  node is enough to miss it.
Evidence: the two figures in the error.
Remedy: free memory on the poorer node, or switch the check off.
References: gb10.md E76; seeds 000 and 001
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LUMA016"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the ranks have different amounts of free memory"
CAUSE = "free-memory-unbalanced-between-ranks"
SIGNS = (
    line(r"memory capacity is unbalanced", POSSIBLE),
    line(r"pre_model_load_memory=(?P<least>[7-9]\d(?:\.\d+)?), local_gpu_memory=(?:9\d|1[012]\d)(?:\.\d+)?", LIKELY),
    near(
        r"memory (?:capacity )?(?:is )?(?:un|im)balance",
        r"SGLANG_ENABLE_TP_MEMORY_IN?BALANCE_CHECK|between (?:the )?(?:nodes|ranks|Sparks)",
        sure=LIKELY,
        within=3,
    ),
)
FIX = (
    "free -g   # on every node: which one has less, and why",
    "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # on every node",
    "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0   # if a few GB of difference are known and wanted",
)
EXPLAINS: tuple[str, ...] = ()
