"""The container still has its old environment.

Detects: A changed variable or flag that has no effect after a restart.
Why: docker restart and compose restart keep the container's configuration; only a new container takes a new one.
Evidence: The note that the change has no effect.
Remedy: Remove the container on every node and start it anew.
References: field guide E 91
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LCLI013"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the container still has its old environment"
CAUSE = "container-not-recreated"
SIGNS = (
    near(
        r"docker restart|compose restart|restart(?:ed|ing)? the container|after (?:a|the) restart",
        r"environment|\.env\b|variable|setting|\bflags?\b",
        r"no effect|not (?:applied|picked up|taken)|still (?:has|uses|the) (?:the )?old|unchanged",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "on every node: docker rm -f <container>, then start it again (docker compose up -d --force-recreate)",
    "docker inspect -f '{{{{json .Config.Env}}}}' <container>",
)
EXPLAINS = ()
