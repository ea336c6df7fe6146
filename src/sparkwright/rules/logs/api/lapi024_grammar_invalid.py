"""A request's grammar, pattern or schema cannot be compiled.

Detects: refusals of the structured-output backends.
Why: xgrammar and llguidance each know a part of regular expressions, EBNF and JSON schema; what they cannot
  compile is refused with the request.
Evidence: the backend's message with the place of the error.
Remedy: repair the pattern or schema, or another backend.
References: vllm/v1/structured_output; https://github.com/mlc-ai/xgrammar
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LAPI024"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the request's pattern or schema cannot be compiled"
CAUSE = "request-grammar-invalid"
SIGNS = (
    line(r"failed to transform regex into a grammar", CERTAIN),
    line(r"grammar error: at \d+\(\d+\)", CERTAIN),
    line(r"regex_converter\.cc:\d+: regex parsing error", LIKELY),
    line(r"failed to convert the grammar from (?:json schema|regex|ebnf)", LIKELY),
)
FIX = (
    "test the pattern or schema alone; leave out look-arounds, back references and unbounded nesting",
    'another backend: --structured-outputs-config \'{{"backend": "guidance"}}\'',
)
EXPLAINS = ()
