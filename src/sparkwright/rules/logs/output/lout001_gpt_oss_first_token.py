"""Gpt-oss through Marlin loses its first token.

Detects: gpt-oss replies with neither content nor reasoning.
Why: on SM 12.1 the Marlin MXFP4 kernel makes a wrong first token, so the Harmony parser finds no message; it looks
  like a token limit.
Evidence: `content: null` and `reasoning: null` together, or the parser's complaint about its first tokens.
Remedy: another build or backend.
References: vLLM issues 37030 and 41477
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, line, near

CODE = "LOUT001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "gpt-oss through Marlin loses its first token"
CAUSE = "gpt-oss-marlin-broken-first-token"
SIGNS = (
    line(r"broken first (?:Harmony )?token"),
    near(
        r"gpt-?oss|mxfp4|harmony",
        r"\bmarlin\b",
        r"content\W{1,6}null|first token|first harmony|empty (?:content|response|reasoning)|HarmonyError"
        r"|garbage|broken (?:first|token|output|answer|response|path)",
        sure=LIKELY,
        within=6,
        unless=r"potential backends",
    ),
    line(r"unexpected tokens? remaining in message header|Expecting start token \d+", HINT),
    line(
        r"gpt-?oss\b.{0,80}(?:Marlin|MXFP4).{0,80}(?:first|wrong|starts? with).{0,16}token"
        r"|first token\b.{0,60}(?:wrong|corrupt|broken|garbage).{0,60}(?:gpt-?oss|Marlin)",
        LIKELY,
    ),
)
FIX = (
    "an image with a repaired Marlin MXFP4 path (vLLM issue 37030) or the CUTLASS MXFP4 build",
    "--moe-backend emulation as a slow check: right answers there prove the kernel",
    "more max_tokens does not help",
)
EXPLAINS = ()
