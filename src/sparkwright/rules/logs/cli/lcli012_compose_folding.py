"""Part of the command line was lost in the compose file.

Detects: Flags after a comment or a line break in a folded YAML command that never reach the engine.
Why: in a folded scalar a blank line or deeper indent ends the line, and a `#` inside the command swallows the rest.
Evidence: The note that flags are missing from the container's command.
Remedy: Write the command as a list, and look at what Docker got.
References: field guide E 90
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LCLI012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "part of the command line was lost in the compose file"
CAUSE = "compose-command-loses-flags"
SIGNS = (
    near(
        r"compose|yaml|folded|Config\.Cmd",
        r"(?:flags?|arguments?|options?|command) .{0,40}(?:lost|missing|swallow|dropped|cut off|ignored)"
        r"|swallow\w* the rest",
        r"newline|line break|comment|folded|scalar",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "docker inspect -f '{{{{json .Config.Cmd}}}}' <container>   # the words that the engine got",
    "write `command:` as a YAML list, one element a line, comments on lines of their own",
)
EXPLAINS = ()
