"""llama-server runs without --jinja.

Detects: llama-server that does not use the model's own chat template, so that tools are ignored or refused.
Why: without --jinja older builds use a built-in template, do not show the tools to the model and do not read its
  calls; newer builds have it on by default.
Evidence: The server's refusal of `tools`, or calls described in prose.
Remedy: Start with --jinja, or take a newer build.
References: https://github.com/ggml-org/llama.cpp (docs/function-calling.md)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LCLI005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "llama-server runs without --jinja"
CAUSE = "llamacpp-missing-jinja-flag"
SIGNS = (
    line(r"requires --jinja|Unsupported param: (?:tools|tool_choice)", CERTAIN),
    line(r"(?:without|missing|add|needs?|lacks|pass) (?:the )?`?--jinja\b", LIKELY),
    near(
        r"llama-server|llama\.?cpp|\bgguf\b",
        r"tool[_ ]calls?|tool calling|function calling",
        r"\bprose\b|plain text|ignor|not returned|no structured|empty `?tool_calls|instead of",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"tool calling|tool_calls",
        r"describes? (?:the|a|its) (?:tool )?call|in prose|instead of (?:returning )?a? ?structured",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "llama-server --jinja ...   # with the model's own template; --chat-template-file <file>.jinja for another",
    "curl -s http://{node}:<port>/props | grep -o '\"chat_template\":.\\{{80\\}}'   # what the server uses",
)
EXPLAINS = ()
