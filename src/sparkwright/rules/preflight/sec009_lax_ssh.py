"""ssh on a node does not look at host keys.

Detects: `StrictHostKeyChecking no` in the user's or the system's ssh_config.
Why: whoever answers at the peer's address is taken for the peer, and gets weights, tokens and a shell. Set-up guides
  for MPI and copies between nodes recommend it; sparkwright does not need it.
Evidence: the file.
Remedy: take it out; `accept-new` trusts a new host once and notices a change.
References: https://man.openbsd.org/ssh_config#StrictHostKeyChecking
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "SEC009"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "ssh does not look at host keys"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) and not context.recipe else ():
        settings = known(facts.settings)
        for path in settings.lax_ssh if settings else ():
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "ssh takes every host for the one that was meant",
                f"{path}: StrictHostKeyChecking no",
                "a guide for MPI or for copies between nodes asked for it",
                f"in {path}: StrictHostKeyChecking accept-new",
            )
