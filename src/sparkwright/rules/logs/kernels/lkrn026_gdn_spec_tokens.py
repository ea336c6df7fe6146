"""The GDN kernel takes no more than four speculative tokens.

Detects: an illegal address in the attention code of GDN (Qwen3-Next, Qwen3.5) models with speculation.
Why: FlashInfer's GDN decode kernel handles up to four speculative tokens; with five it faults under load.
Evidence: an illegal memory access at gdn_attn.py.
Remedy: at most four.
References: FlashInfer pull request 2679
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LKRN026"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GDN kernel takes no more than four speculative tokens"
CAUSE = "gdn-kernel-spec-token-limit"
SIGNS = (
    near(
        r"gdn_attn|gdn_linear_attn|gdn_backend|\bGDN (?:kernel|decode|attention|backend)",
        r"cudaErrorIllegalAddress|illegal memory access",
        sure=LIKELY,
        within=10,
    ),
    near(
        r"gdn_attn|\bGDN (?:kernel|decode|attention|backend)",
        r"num_speculative_tokens ?[>=:]{1,2} ?\d|more than (?:4|four)|speculative tokens",
        r"crash|illegal|\bfaults?\b|\blimit",
        sure=LIKELY,
        within=2,
    ),
    line(r"GDN decode MTP fusion requires", LIKELY),
    line(
        r"num_speculative_tokens\b.{0,60}\b(?:gdn|GDN|gated[_ ]delta|delta_rule|linear attention)|\b(?:gdn"
        r"|gated[_ ]delta)\b.{0,80}(?:speculative tokens|num_speculative|draft tokens|spec tokens|T <= ?\d)",
        LIKELY,
        unless=r"non-default args|INFO",
    ),
)
FIX = (
    '"num_speculative_tokens": 4 or fewer in --speculative-config',
    "or FlashInfer with pull request 2679",
)
EXPLAINS = ()
