"""FlashInfer's autotuner keeps the ranks waiting.

Detects: a start that stays in FlashInfer's autotuning.
Why: each rank times kernels by itself; when one falls behind, the others wait in a collective. One to some waiting
  lines are normal; many of them, then exit 255, are not.
Evidence: AutoTuner lines followed by repeated waits of shm_broadcast.
Remedy: switch autotuning off, at some loss of speed, if the start never ends.
References: field guide E54 [C]
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, Sign, line

CODE = "LGRA008"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "FlashInfer's autotuner keeps the ranks waiting"
CAUSE = "flashinfer-autotune-stalls-ranks"
SIGNS = (
    Sign(
        (
            r"\[AutoTuner\]|(?<!Skipping )FlashInfer autotun\w+",
            r"No available shared memory broadcast block",
        ),
        LIKELY,
        40,
        times=8,
    ),
    line(r"^(?=.*autotun).*(?:\bhangs?\b|hung\b|stuck|deadlock|exits? 255)", LIKELY, unless=r"Skipping|disabled"),
)
FIX = (
    (
        "sources differ: --no-enable-flashinfer-autotune cured it on one pair of nodes; others keep autotuning on "
        "for its speed"
    ),
    "if it is kept on: let the first start run up to half an hour, and keep the cache",
)
EXPLAINS = ()
