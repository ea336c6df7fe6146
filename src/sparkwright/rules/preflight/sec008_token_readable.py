"""The hub's token can be read by other users.

Detects: the Hugging Face token file of the ssh user gives group or others any right.
Why: whoever has an account on the node, or a container with the home mounted, may use it.
Evidence: mode and file; its text is never read.
Remedy: mode 600; a new token if others had access.
References: huggingface_hub writes it with the user's umask.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "SEC008"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the hub's token can be read by others"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) and not context.recipe else ():
        settings = known(facts.settings)
        if settings and settings.token_mode and not settings.token_mode.endswith("00"):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"the hub's token has mode {settings.token_mode}",
                f"stat: {settings.token_mode} {settings.token_file}",
                "it was written with the usual umask",
                f"on {facts.node}: chmod 600 {settings.token_file}",
            )
