"""An oops, a lockup or a BUG in this boot's kernel log.

Detects: a line of a GB10's kernel log of this boot says Oops, BUG, soft lockup or `Unable to handle kernel`.
Why: after that the kernel goes on with locks or memory left behind by what failed; hangs and wrong answers later are
  its followers.
Evidence: the line, how often, and when.
Remedy: save the log, reboot; keep tools that touch the NIC's registers (mstflint) off a freshly attached cable.
References: https://docs.kernel.org/admin-guide/bug-hunting.html; an oops in pci_bus_read_config_dword was seen with
  mstflint after a hot attach (6.17.0-1032).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.kernel_notes import notes, told
from sparkwright.rules.rule import Context

CODE = "HOST015"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the kernel has failed in this boot"

_FAILED = re.compile(r"Oops|\bBUG: |soft lockup|Unable to handle kernel|Kernel panic", re.ASCII)


def check(context: Context) -> Iterator[Finding]:
    for facts, found in notes(context, _FAILED):
        yield Finding(
            CODE,
            SEVERITY,
            facts.node,
            "the kernel has failed since boot",
            told(found),
            "a fault in a driver or in memory; what runs now may hang or fail because of it",
            "sudo journalctl -k -b > kernel.log; then sudo systemctl reboot --no-block",
        )
