"""A guard for other GPUs was forced open.

Detects: wrong output after a capability check was edited away.
Why: the check kept out a kernel that needs SM 10.x hardware; without it the kernel runs on SM 12.x and computes
  wrongly, often only past some context length.
Evidence: reports that name the guard, or the pattern: short prompts right, long ones endless repeats.
Remedy: restore the guard.
References: SGLang issue 36558
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN013"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a guard for other GPUs was forced open"
CAUSE = "arch-gate-forced-open-garbage"
SIGNS = (
    near(
        r"is_sm100_supported|SM100-only|(?:patch|forc|bypass|relax|remov|comment|open).{0,60}(?:guard"
        r"|gate|capability check|arch check|assert)|(?:guard|gate|check).{0,40}(?:patched|bypassed"
        r"|removed|forced|relaxed|opened)",
        r"garbage|gibberish|garbled|token id 0|wrong (?:output|answers?|results?)|incorrect (?:output"
        r"|results?)|decodes to|computes? wrong|does not hold",
        sure=LIKELY,
        within=8,
    ),
    line(r"runs of token id 0|token id 0\b.{0,40}decodes", LIKELY),
    near(
        r"short prompts?",
        r"few thousand|longer (?:prompts|context|ones)|beyond \d|past \d|at depth|long context",
        r"garbage|gibberish|garbled|unbroken|token id|!!!!|breaks down",
        sure=POSSIBLE,
        within=4,
    ),
)
FIX = (
    "undo the patch of the guard (is_sm100_supported, assert on the capability)",
    "take a version or image with a kernel for SM 12.x, or another attention or MoE backend",
)
EXPLAINS = ()
