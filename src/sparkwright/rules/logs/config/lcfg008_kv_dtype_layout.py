"""This attention layout needs an fp8 KV cache.

Detects: DeepSeek's sparse attention layout with a KV cache type other than fp8.
Why: fp8_ds_mla keeps keys in FP8 with its own scales; `auto` means bfloat16.
Evidence: The engine's line.
Remedy: --kv-cache-dtype fp8.
References: field guide E 59
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCFG008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "this attention layout needs an fp8 KV cache"
CAUSE = "kv-cache-dtype-needs-fp8-for-layout"
SIGNS = (
    line(r"fp8_ds_mla layout only supports fp8 kv-?cache", CERTAIN),
    line(r"fp8_ds_mla.{0,80}(?:only supports|requires|needs|must be).{0,40}fp8", LIKELY),
)
FIX = ("add --kv-cache-dtype fp8",)
EXPLAINS = ()
