"""Tool arguments of earlier turns are encoded wrongly.

Detects: reports of tool calls that are right the first time in a session and broken from the second on, and encoder
  errors on arguments.
Why: the encoder of the history gets arguments as an object where it expects text (or the other way round), writes
  them into the prompt twice quoted, and the model copies that.
Evidence: the encoder's name with arguments, or the words of the report.
Remedy: a build with the repaired encoder, or arguments sent as text.
References: gb10.md E120 (one source)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, line, near

CODE = "LAPI020"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "tool arguments poisoned from the second call on"
CAUSE = "tool-history-encoded-wrongly"
SIGNS = (
    line(r"encode_arguments_to_dsml", POSSIBLE),
    near(
        r"tool (args|arguments|calls?)",
        r"second (call|turn|request)|later (calls|turns)|from the second",
        r"poison|corrupt|double[- ]encoded|twice (quoted|encoded)|escaped|broken|malformed",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "send function.arguments of earlier turns as a JSON text, as the API returned it",
    "update the encoding package of the image",
)
EXPLAINS = ()
