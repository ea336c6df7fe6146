"""The tool call parser is missing or is not the one of the model.

Detects: requests with tools that are refused, parsers that fail on the model's output, and raw tool call text in
  the answer while tool_calls is empty.
Why: each model family writes calls in its own markup; the server cuts them out only when --tool-call-parser names
  that format and --enable-auto-tool-choice is set.
Evidence: the refusal, the parser's own error lines, or the markup in content.
Remedy: set both flags, with the parser of the model's family.
References: gb10.md E118; https://docs.vllm.ai/en/latest/features/tool_calling.html;
  https://github.com/NVIDIA/NemoClaw/pull/6551
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LAPI003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "tool call parser missing or wrong for this model"
CAUSE = "tool-call-parser-wrong-or-missing"
SIGNS = (
    line(r"tool choice requires.{0,40}enable-auto-tool-choice", CERTAIN),
    line(r"enable-auto-tool-choice requires.{0,20}tool-call-parser", CERTAIN),
    line(r"invalid tool call parser|tool parser '[^']{1,60}' not found", CERTAIN),
    line(r"tool_parser\.py:\d+\].{0,40}error", LIKELY),
    line(
        r"<(tool_call|function=).{0,300}(as (plain |raw )?text|instead of (running|calling|executing|a call)|原样)",
        LIKELY,
    ),
    line(
        r"<(tool_call|function=).{0,300}tool_calls\W{0,10}(为|is|are|was|stays)? ?\W{0,4}(null|none|empty|空|\[\])",
        LIKELY,
    ),
    line(r"error (in|when|while) (extracting|parsing|trying to).{0,24}tool call", LIKELY),
    line(r"content\W{1,6}[^\"]{0,400}(<tool_call>|<function=|<\|tool_call|\[TOOL_CALLS\]|<｜DSML)", LIKELY),
    near(
        r"</?tool_call>|<function=|<\|tool_calls?|\[TOOL_CALLS\]"
        r"|tool[_ -]call (markup|syntax|text|tags|xml|json|tokens)|\bDSML\b|tool calls? as (plain |raw )?text",
        r"\bcontent\b|plain text|raw text|raw `?<",
        r"tool_calls\W{0,12}(is |are |was |stays? |comes? back )?(empty|null|none|\[\])|parser",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"(tool[-_ ]call|tool)[-_ ]parser",
        r"truncated arguments|malformed|wrong parser|does not match|doesn't match|not match the",
        sure=LIKELY,
        within=2,
    ),
    line(r"requires tool_parser:.{0,40} which has not been registered|Failed to import lazy tool parser", CERTAIN),
    line(r"Tool ?parser could not locate (?:the |tool )|ToolParser.{0,30}could not (?:locate|find)", LIKELY),
    line(
        r"\"tool_calls\": ?(?:\[\]|null).{0,400}\"content\": ?\"[^\"]{0,200}(?:<tool_call>|<function="
        r"|\[TOOL_CALLS\]|\{\\\"name\\\":)",
        LIKELY,
    ),
    line(
        r"tool[_ -]calls?\b.{0,30}(?:come|comes|came|appear|arrive|returned?|end|ends|land|lands"
        r"|shown?|leak\w*)\b.{0,24}(?:plain text|raw text|in (?:the )?content|as text|as content"
        r"|inside content|unparsed)",
        LIKELY,
    ),
)
FIX = (
    (
        "serve with --enable-auto-tool-choice --tool-call-parser NAME; hermes for Hermes and most Qwen3, "
        "qwen3_coder for the Qwen coder and 3.5 families, deepseek_v4, minimax_m2, openai (gpt-oss), llama3_json"
    ),
    "vllm serve --help=tool-call-parser   # the names that this version knows",
)
EXPLAINS = ()
