"""The kernel has killed programs for lack of memory in this boot.

Detects: a GB10's kernel log of this boot has `Out of memory: Killed process`, or the counter oom_kill of /proc/vmstat
  is above 0.
Why: what was killed may be a rank (its peers then hang), a service or a monitor; it happens again with the same load.
Evidence: the line, or the count.
Remedy: a lower memory fraction, or fewer other programs.
References: https://docs.kernel.org/admin-guide/mm/concepts.html (OOM killer).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.kernel_notes import told
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM013"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the kernel has killed for lack of memory since boot"

_KILLED = re.compile(r"Out of memory: Killed process|Memory cgroup out of memory: Killed")


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        log, activity = known(facts.kernel_log), known(facts.activity)
        lines = log.matching(_KILLED) if log else ()
        count = (known(activity.oom_kills) or 0) if activity else 0
        if lines or count:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the kernel has killed programs for lack of memory",
                told(lines) if lines else f"/proc/vmstat: oom_kill {count} since boot",
                "more memory was asked for than there is; GPU memory is part of it",
                "lower serving.memory_fraction or the context, or stop other programs (journalctl -k -b | grep -i oom)",
            )
