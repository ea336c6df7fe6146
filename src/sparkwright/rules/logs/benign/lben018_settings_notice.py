"""The engine says what a setting switches off.

Detects: notices about eager mode, compilation, async scheduling and sampling parameters.
Why: they repeat what the command line or the model implies; nothing fails by them.
Evidence: the notice.
Remedy: none.
References: captures (b-8b-085.log, s-ngram.log)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN018"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "consequence of a chosen setting"
CAUSE = "benign-settings-notice"
SIGNS = (
    line(r"enforce eager set, disabling torch\.compile", HINT),
    line(r"inductor compilation was disabled by user settings", HINT),
    line(r"async scheduling (is )?not supported with", HINT),
    line(r"parameters won't work with speculative decoding", HINT),
    line(r"found duplicate keys --", HINT),
    line(r"(disabling|overriding|setting) .{0,60}because .{0,40}(is not supported|not set)", HINT),
)
FIX = ()
EXPLAINS = ()
