"""The launcher's ssh lost the quoting of the arguments.

Detects: Workers started over ssh whose arguments were split again by the remote shell.
Why: ssh joins its words with blanks and the remote shell splits them anew: JSON loses its quotes, values with blanks
  fall apart. The worker's container stays in `Created` or exits at once, and the head waits for ranks that never
  come.
Evidence: A worker container in `Created`, or the remote shell's own errors.
Remedy: Quote each word once for the remote shell, or send a script.
References: https://man.openbsd.org/ssh; https://github.com/vllm-project/vllm/issues
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LCLI008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the launcher's ssh lost the quoting of the arguments"
CAUSE = "ssh-fanout-quoting-mangles-args"
SIGNS = (
    near(
        r"docker ps -a|worker containers?|containers? on (?:the )?worker",
        r"\bCreated\b",
        r"head waited|never (?:arrived|joined|became|came)|waits? for ranks|ranks that",
        sure=LIKELY,
        within=5,
    ),
    line(r"containers? .{0,60}(?:stay|remain|stuck|hang|left)\w* in \W{0,3}Created\b", POSSIBLE),
    near(
        r"\bssh |\bssh,|(?:by|over|via) ssh\b|remote shell|\bbash -l?c\b|fanout|fan-out",
        r"quot(?:ing|es)|mangl|split|flatten|re-?parsed|escap",
        r"argv|arguments?|json|--speculative-config|--\w+-config",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"bash: -c: line \d+: (?:unexpected EOF while looking for matching|syntax error near unexpected token)",
        LIKELY,
    ),
    near(r"\bssh ", r"JSONDecodeError|cannot be converted to|unexpected EOF while looking for", sure=LIKELY, within=6),
)
FIX = (
    (
        "on {peer}: docker ps -a --format '{{{{.Names}}}} {{{{.Status}}}}'; docker inspect -f '{{{{json "
        ".Config.Cmd}}}}' <container>   # the words that arrived"
    ),
    "quote once: ssh {peer} \"$(printf '%q ' docker run ... )\", or copy a script to {peer} and run that",
)
EXPLAINS = ()
