"""The chat template refuses the order or kind of the messages.

Detects: template errors about roles.
Why: templates of some families allow no system message, or only user and assistant in turn; clients that send two
  messages of one role, or tools, are answered 400.
Evidence: the template's own words.
Remedy: merge messages of one role, put the system text into the first user message, or serve with a more tolerant
  template.
References: https://huggingface.co/docs/transformers/chat_templating;
  https://github.com/vllm-project/vllm/issues/6862
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LAPI010"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "chat template refuses the conversation's roles"
CAUSE = "chat-roles-rejected-by-template"
SIGNS = (
    line(r"conversation roles must alternate", CERTAIN),
    line(r"system (role|messages?) (is |are )?not supported", LIKELY),
    line(r"(only|first) (user|system),? .{0,40}roles? (is|are) supported", LIKELY),
    line(r"(unexpected|unknown|invalid) (message )?role\b.{0,60}(template|message)", POSSIBLE),
)
FIX = (
    "in the client: join messages of the same role, put the system text at the head of the first user message",
    "or serve with --chat-template FILE.jinja that accepts them",
)
EXPLAINS = ()
