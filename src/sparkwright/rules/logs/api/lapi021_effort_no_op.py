"""A reasoning effort has no effect.

Detects: reports of a reasoning_effort that changes nothing.
Why: templates and encoders know some of the values only; an unknown one adds no text to the prompt.
Evidence: equal prompt token counts with and without the setting.
Remedy: a value that the template knows.
References: gb10.md E124 (one source)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, near

CODE = "LAPI021"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "reasoning effort is not known to the template"
CAUSE = "reasoning-effort-ignored"
SIGNS = (
    near(
        r"reasoning[_ -]effort",
        r"no[- ]op\b|no effect|ignored|not applied|does nothing|same prompt|has no",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "compare: curl http://{head}:{port}/tokenize with and without the setting; equal counts mean that it is ignored",
    "for DeepSeek-V4: use max, or none",
)
EXPLAINS = ()
