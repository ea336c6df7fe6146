"""--language-only was given without encoder servers.

Detects: SGLang that asks for --encoder-urls.
Why: the flag is one half of encoder disaggregation: vision runs on other servers. It does not mean `skip the vision
  tower`.
Evidence: SGLang's ValueError.
Remedy: Leave the flag out, or name running encoder servers.
References: python/sglang/srt/server_args.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCFG007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "--language-only was given without encoder servers"
CAUSE = "sglang-language-only-needs-encoder-urls"
SIGNS = (
    line(r"requires at least one encoder urls? to be set via --encoder-urls", CERTAIN),
    line(r"_handle_encoder_disaggregation", LIKELY),
    line(r"^(?=.*(?:require|need|missing|error|without)).*--language-only.*encoder", LIKELY),
    line(r"cannot set --encoder-only and --language-only", LIKELY),
)
FIX = (
    "take --language-only out of the command",
    "or start encoder servers (--encoder-only) and name them: --encoder-urls http://<encoder>:<port>",
)
EXPLAINS = ()
