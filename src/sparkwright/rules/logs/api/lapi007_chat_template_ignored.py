"""A chat template that is given is not used.

Detects: servers that say that a chat template cannot be set for this tokenizer or from a request.
Why: in mistral tokenizer mode prompts are built by mistral-common, so --chat-template has no effect; templates
  inside requests are refused unless the server trusts them.
Evidence: the warning or the refusal.
Remedy: the Hugging Face tokenizer mode with the template, or none.
References: https://github.com/vllm-project/vllm/pull/26358;
  https://github.com/vllm-project/vllm/blob/main/vllm/tokenizers/mistral.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LAPI007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "given chat template is ignored"
CAUSE = "chat-template-override-ignored"
SIGNS = (
    line(r"chat_template\W{0,2} (cannot be overridden|is not supported) for mistral", CERTAIN),
    line(r"refused request with untrusted chat template|trust-request-chat-template is not set", LIKELY),
    line(r"(add_generation_prompt|continue_final_message)\W{0,2} is not supported for mistral", POSSIBLE),
    near(
        r"chat[-_ ]template",
        r"\b(is |was |gets )?(ignored|dropped|no effect)\b|cannot be overridden",
        r"mistral|tokenizer[-_ ]mode",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "serve with --tokenizer-mode hf (auto in older versions) and --chat-template FILE.jinja",
    "or leave --chat-template away and use mistral-common as it is",
)
EXPLAINS = ()
