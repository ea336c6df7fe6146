"""ssh to a node does not work.

Detects: refused keys, unknown host keys, refused connections and transfers over ssh that end with 255.
Why: keys are missing for this user or inside the container, the host key is new, or ssh waits for a password that
  nobody can type.
Evidence: ssh's own line.
Remedy: ssh-copy-id to every node's address that the launcher uses.
References: field guide C0 (2), C4; https://github.com/spark-arena/sparkrun/issues/67
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LCLU009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a node cannot be reached by ssh"
CAUSE = "ssh-not-reachable-or-keys-missing"
_GONE = r"timed out|no route to host|network is unreachable"  # not ssh's fault
SIGNS = (
    line(
        r"permission denied \((?:publickey|password|keyboard-interactive|gssapi)[^)]{0,60}\)",
        CERTAIN,
        unless=r"git@|github",
    ),
    line(r"host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED", CERTAIN),
    line(r"connect to host (?P<address>\S+) port \d+: Connection refused", LIKELY),
    line(r"connect to host (?P<address>\S+) port \d+: ", POSSIBLE),
    line(r"(?:ssh|scp|rsync|pipeline|SSH cmd).{0,80}\brc=255\b|FAILED rc=255", LIKELY, unless=_GONE),
    line(r"(?:ssh|SSH).{0,12}免密|免密.{0,12}ssh", POSSIBLE),
    line(r"\bSSH connection refused|SSH requires (?:a )?password|password every time", LIKELY),
    line(r"ssh_exchange_identification|kex_exchange_identification", LIKELY),
    line(r"(?:ORTE|PRTE|PRRTE) (?:was unable to reliably start|has lost communication)", POSSIBLE),
    near(
        r"password-?less ssh|\bssh[- ](?:keys?|access|login)\b|ssh-copy-id|authorized_keys",
        r"missing|not set up|fails\b|required|without|does(?:n't| not) work|asks? for (?:a )?password|prompt",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "ssh-copy-id <user>@{node}   # for every node, from the machine that launches",
    "ssh -o BatchMode=yes <user>@{node} true   # must end without a question",
)
EXPLAINS = ()
