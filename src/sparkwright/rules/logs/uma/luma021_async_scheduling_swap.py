"""Asynchronous scheduling pushes the host into swap.

Detects: reports that tie growing swap or latency to async scheduling.
Why: the scheduler prepares the next step while one runs and holds a second set of host buffers. Leaving the flag
  out is not off: newer vLLM turns it on by default. One source only.
Evidence: swap activity (pswpin, pswpout), not swap in use.
Remedy: `--no-async-scheduling`.
References: gb10.md E106, F1
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LUMA021"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "swap grows with asynchronous scheduling"
CAUSE = "async-scheduling-grows-swap"
SIGNS = (
    near(
        r"async-scheduling|async_scheduling|async scheduling|asynchronous scheduling",
        r"\bswap(?:s|ped|ping)?\b.{0,40}(?:grow|rise|increas|activ|full)|(?:grow|rising|increas)\w* swap|pswp(?:in"
        r"|out)",
        sure=LIKELY,
    ),
)
FIX = (
    "--no-async-scheduling   # on all ranks",
    "grep pswp /proc/vmstat; sleep 10; grep pswp /proc/vmstat   # on {node}: activity counts, not use",
)
EXPLAINS: tuple[str, ...] = ()
