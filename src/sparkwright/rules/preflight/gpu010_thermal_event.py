"""A thermal limit was reached in this boot.

Detects: a GB10's kernel log of this boot has a line about a critical or emergency temperature or a thermal shutdown.
Why: GB10 machines switch themselves off under load when the board is too hot, mostly without a line in any log: one
  that is there is worth acting on.
Evidence: the line, how often, and when.
Remedy: air, dust, thermal paste; a clock limit helps for the time being.
References: https://docs.kernel.org/driver-api/thermal/; forums.developer.nvidia.com 378315
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.kernel_notes import notes, told
from sparkwright.rules.rule import Context

CODE = "GPU010"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a thermal limit was reached since boot"

_THERMAL = re.compile(
    r"critical temperature|thermal (emergency|shutdown|trip)|temperature above threshold", re.IGNORECASE
)


def check(context: Context) -> Iterator[Finding]:
    for facts, found in notes(context, _THERMAL):
        yield Finding(
            CODE,
            SEVERITY,
            facts.node,
            "a thermal limit was reached since boot",
            told(found),
            "little air, dust, or thermal paste that has aged",
            "give it air; for the time being sudo nvidia-smi -lgc 200,2000 on all nodes (lost at reboot)",
        )
