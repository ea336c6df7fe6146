"""The client reads a reasoning field of another name.

Detects: clients that miss the thinking text, or errors about the attribute.
Why: newer vLLM sends `reasoning`, older vLLM, SGLang and llama.cpp `reasoning_content`; a client that reads only
  one of them sees nothing.
Evidence: the attribute error or the words of the report: both names together.
Remedy: read both names.
References: gb10.md E129; https://docs.vllm.ai/en/latest/features/reasoning_outputs.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, line, near

CODE = "LAPI014"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "reasoning field has another name than the client reads"
CAUSE = "reasoning-field-renamed"
SIGNS = (
    line(r"has no attribute 'reasoning_content'", POSSIBLE),
    near(
        r"reasoning_content",
        r"renam(ed|es)|instead of `?(message\.|delta\.)?reasoning|(now|called|named) `?reasoning\b"
        r"|`reasoning` (vs|field instead|rather)",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = ("in the client: text = message.reasoning or message.reasoning_content",)
EXPLAINS = ()
