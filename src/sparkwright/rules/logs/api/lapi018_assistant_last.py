"""A conversation that ends with the assistant's turn makes the model end at once, again and again.

Detects: reports of empty answers or loops after a conversation whose last message is the assistant's.
Why: the renderer closes that message, the model has nothing to add and ends at once; agents then ask again.
Evidence: the words of the report.
Remedy: end with a user or tool message, or ask for continuation.
References: gb10.md E122 (one source)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, near

CODE = "LAPI018"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "assistant message last: end-of-text loop"
CAUSE = "assistant-final-message-eos-loop"
SIGNS = (
    near(
        r"assistant[- ]final|(last|final|ends? with an?) (message (is|being) )?(an? |the )?assistant",
        r"emits? EOS|EOS loop|end[- ]of[- ](text|sequence)|empty|loops?\b",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "end the conversation with a user or tool message",
    'or send "continue_final_message": true, "add_generation_prompt": false',
)
EXPLAINS = ()
