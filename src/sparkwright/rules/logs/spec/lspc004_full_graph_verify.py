"""Full CUDA graphs break the check of drafts.

Detects: drafts that are all rejected together with repeating text.
Why: with FULL graphs the verification of drafts is captured wrongly; output collapses into repeats, unlike a bad
  drafter, which only costs speed.
Evidence: zero acceptance in every position and broken text at once.
Remedy: piecewise graphs.
References: Blackwellboy/model-serving-minefield, trap 122
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LSPC004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "full CUDA graphs break the check of drafts"
CAUSE = "full-cudagraph-corrupts-spec-verify"
SIGNS = (
    near(
        r"Accepted:? ?`?0\b|acceptance\W.{0,20}`?0\.0{2,}",
        r"repetitive text|think think|a a a |repeats? (?:the same|one)|collapse|garbage|gibberish|garbled",
        sure=LIKELY,
        within=8,
    ),
    near(
        r"FULL CUDA graph|FULL cudagraph|cudagraph_mode.{0,12}FULL|(?<!Mode\.)FULL_AND_PIECEWISE"
        r"|(?<!Mode\.)FULL_DECODE_ONLY|full graphs?|FULL capture",
        r"speculative (?:decod|draft|token|method|sampl)|speculation|\bMTP (?:verif|draft|spec)"
        r"|draft tokens?|acceptance",
        r"corrupt|garbage|garbled|every draft|drafts rejected|rejected|`0\.00|: 0\.00|collapse|repetit",
        sure=LIKELY,
        within=4,
        unless=r"SpeculativeConfig\(",
    ),
)
FIX = (
    '--compilation-config \'{{"cudagraph_mode": "PIECEWISE"}}\'',
    "or no --speculative-config",
)
EXPLAINS = ()
