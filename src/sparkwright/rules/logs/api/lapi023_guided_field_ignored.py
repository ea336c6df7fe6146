"""Fields of the old guided decoding are ignored.

Detects: the server's warning that a request's constraint has no effect.
Why: vLLM removed guided_json and its kin in favour of structured_outputs; a request with the old names is answered
  without any constraint.
Evidence: the warning with the names.
Remedy: the new field, or response_format.
References: https://docs.vllm.ai/en/latest/features/structured_outputs.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LAPI023"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "removed guided-decoding fields are ignored"
CAUSE = "guided-decoding-field-ignored"
SIGNS = (
    line(r"removed guided-decoding field", LIKELY),
    near(
        r"guided_(json|regex|choice|grammar)",
        r"ignored|no effect|not constrained|unconstrained|removed",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = ('send "structured_outputs": {{"json": SCHEMA}} or response_format of type json_schema',)
EXPLAINS = ()
