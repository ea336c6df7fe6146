"""`vm.min_free_kbytes` was raised before the engine's start.

Detects: a raised reserve together with the engine's check of free memory.
Why: MemAvailable is lowered by about twice the reserve (the watermarks), and vLLM's start-up check reads
  MemAvailable.
Evidence: free memory a few GiB below what was asked for, and the setting.
Remedy: raise the reserve after the start, or ask for less.
References: gb10.md A4; seed 004
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LUMA011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the kernel's reserve fails the start-up check"
CAUSE = "min-free-kbytes-lowers-available"
SIGNS = (
    near(
        r"min_free_kbytes",
        r"start-?up check|MemAvailable|watermark|Free memory on device|lowers?\b|fails the check|refus|before (?:vLLM"
        r"|the engine|start)",
        sure=LIKELY,
        within=6,
    ),
    line(r"min_free_kbytes\W{1,5}(?:is |to |at )?(?:[4-9]\d{6}|\d{8,})", LIKELY),
)
FIX = (
    "sudo sysctl -w vm.min_free_kbytes=67584   # on {node} before the start",
    "sudo sysctl -w vm.min_free_kbytes=3145728   # after `Application startup complete`",
    "or --gpu-memory-utilization lower by 0.05",
)
EXPLAINS = ("gpu-memory-utilization-above-free",)
