"""`max_num_batched_tokens` reserves more than the memory has.

Detects: 32K and more batched tokens on a GB10, or an out-of-memory error beside such a value.
Why: activations, workspaces and the drafter's buffers grow with the number of tokens of one step. On unified memory
  the host hangs during the profile run instead of an error.
Evidence: the flag's value on a GB10; the out-of-memory error.
Remedy: 8192 or fewer tokens a step.
References: https://github.com/AEON-7/vllm-dflash/issues/1; gb10.md E73
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LSIZ008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "too many batched tokens for this memory"
CAUSE = "max-num-batched-tokens-too-large"
SIGNS = (
    near(
        r"max[-_]num[-_]batched[-_]tokens[= ']{1,3}(?P<tokens>3[3-9]\d{3}|[4-9]\d{4}|\d{6,})\b",
        r"NVIDIA GB10|\bGB10\b|DGX Spark|unified[- ]memory",
        sure=LIKELY,
        within=60,
    ),
    near(
        r"max[-_]num[-_]batched[-_]tokens[= ']{1,3}(?P<tokens>1[6-9]\d{3}|[2-9]\d{4}|\d{6,})\b",
        r"OutOfMemoryError|out of memory| OOM\b",
        sure=LIKELY,
        within=30,
        unless=r"Chunked prefill is enabled",
    ),
    near(
        r"max[-_]num[-_]batched[-_]tokens|MAX_NUM_BATCHED_TOKENS|chunked-prefill-size",
        r"(?:too (?:large|high|big)|lower(?:ed|ing)?|reduc(?:e|ed|ing)).{0,80}(?:OOM|out of memory|hang|freez"
        r"|exhaust)|(?:OOM|out of memory|hang|freez|exhaust).{0,80}(?:too (?:large|high|big)|lower|reduc)",
        sure=POSSIBLE,
        unless=r"non-default args|server_args|Chunked prefill is enabled",
    ),
    line(
        r"max[-_]num[-_]batched[-_]tokens[ =]\d{5,}\b.{0,60}(?:activations?|profile run|OOM|out of memory"
        r"|too (?:large|big|much)|GiB)",
        LIKELY,
        unless=r"non-default args",
    ),
)
FIX = (
    "--max-num-batched-tokens 8192   # SGLang: --chunked-prefill-size 8192",
    "sparkwright plan {recipe}   # the reserve for activations follows this number",
)
EXPLAINS: tuple[str, ...] = ()
