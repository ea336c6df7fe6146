"""A flag has a value that this release does not offer.

Detects: argparse's, click's or pydantic's refusal of a value for a flag or field that itself exists.
Why: choices are renamed, added and removed like flags; SGLang for instance wants fp8_e4m3 where vLLM takes fp8.
Evidence: The parser's line with the choices.
Remedy: Take one of the choices that the line lists.
References: seed 000 (`Old flag, New flag`)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LCLI011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a flag has a value that this release does not offer"
CAUSE = "cli-flag-value-unknown"
SIGNS = (
    line(
        r"argument (?P<flag>--?[\w/-]+): invalid choice: '?(?P<value>[^' ]+)",
        LIKELY,
        unless=r"attention-backend|-parser:|-parser/",
    ),
    line(
        r"Invalid value for '?(?P<flag>--[\w-]+)'?(?:[^:]{0,30})?: '?(?P<value>[\w.-]+)'? is not one of",
        LIKELY,
        unless=r"--backend",
    ),
    line(r"argument (?P<flag>--?[\w/-]+): invalid human_readable_int_or_auto value: '(?P<value>[^']*)'", LIKELY),
    line(r"Input should be (?:less|greater) than (?:or equal to )?\d.{0,40}input_value=(?P<value>[^,]+)", LIKELY),
    line(r"Input should be '.{0,900}type=literal_error, input_value='?(?P<value>[^',]+)", LIKELY),
    line(r"reasoning parser '(?P<value>[^']+)' not found", LIKELY),
)
FIX = ("use one of the listed values for {flag}; {value} belongs to another release or engine",)
EXPLAINS = ()
