"""The evaluation client tokenizes prompts itself.

Detects: reports of an evaluation score near zero that a client setting repairs.
Why: lm-eval's completions client tokenizes with its own tokenizer and sends token ids; special tokens are doubled
  or lost, and the score collapses while the model is sound.
Evidence: the setting named with the score.
Remedy: send text.
References: gb10.md E127 (one source)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, near

CODE = "LAPI016"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "evaluation client sends its own tokens"
CAUSE = "eval-client-tokenizes-prompt"
SIGNS = (
    near(
        r"tokenized_requests|client[- ]side tokeni[sz]ation|tokeni[sz]es? .{0,20}client[- ]side",
        r"lm[-_]eval|score|accuracy",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = ("lm_eval --model local-completions --model_args ...,tokenized_requests=False",)
EXPLAINS = ()
