"""The kernel log of a GB10 cannot be read.

Detects: neither the journal nor dmesg gave a line to the ssh user of a GB10 node.
Why: Xid errors, driver faults, OOM kills and cable events of this boot are then not looked for: a check without
  findings says less.
Evidence: the node's own words.
Remedy: let the user read the journal.
References: journalctl(1): members of systemd-journal and adm see the system's messages.
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NOT_ASKED, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import sparks
from sparkwright.rules.rule import Context

CODE = "HOST024"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the kernel log cannot be read"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        if isinstance(facts.kernel_log, Unknown) and facts.kernel_log != NOT_ASKED:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the kernel log cannot be read; Xid errors and OOM kills were not looked for",
                facts.kernel_log.raw or facts.kernel_log.why,
                "the ssh user is in none of the groups adm and systemd-journal, and dmesg is for root",
                "sudo usermod -aG systemd-journal $USER on the node, then log in anew",
            )
