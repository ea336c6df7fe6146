"""A stream carries empty lists of tool calls.

Detects: reports of chunks with an empty list of calls that confuse the client.
Why: some parsers send tool_calls as an empty list while they wait for a whole call; clients take it for the end of
  a call, or fail on the first element.
Evidence: the empty list in delta, or the client's index error.
Remedy: a parser version with the guard, or a client that ignores empty lists.
References: gb10.md E119 (one source)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, line, near

CODE = "LAPI019"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "empty tool_calls deltas in the stream"
CAUSE = "empty-tool-call-deltas"
SIGNS = (
    line(r"\"delta\" ?: ?\{[^}]{0,200}\"tool_calls\" ?: ?\[\]", POSSIBLE),
    near(
        r"tool_calls\W{0,6}\[\]|empty (tool_calls|tool[- ]call)",
        r"\bdeltas?\b|stream(ing|ed)?\b.{0,30}(tool|chunk|client)",
        sure=POSSIBLE,
        within=2,
        unless=r"<tool_call>|\bcontent\b",
    ),
)
FIX = (
    "in the client: ignore a delta whose tool_calls is empty",
    "try the newest release of the engine, or the parser of the model's card",
)
EXPLAINS = ()
