"""Programs wait for memory now.

Detects: the kernel's pressure figure for the memory of a GB10: all tasks waited (full) more than 0.1 % of the last ten
  seconds. A warning above 1 %: a file that is copied can make a short stall.
Why: reclaim runs all the time and everything is slow; above 1 % machines with one pool of memory have frozen.
Evidence: the figures.
Remedy: free memory before anything else.
References: https://docs.kernel.org/accounting/psi.html; https://github.com/thatcooperguy/NVCheckup (0.1 warns, 1.0 is
  critical)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "programs wait for memory"

_FULL, _MUCH = 0.1, 1.0


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        activity = known(facts.activity)
        full = known(activity.stall_full) if activity else None
        if activity and full is not None and full > _FULL:
            yield Finding(
                CODE,
                SEVERITY if full > _MUCH else Severity.INFO,
                facts.node,
                "programs wait for memory",
                f"/proc/pressure/memory: full avg10={full:g}, some avg10={known(activity.stall_some) or 0:g} (percent)",
                "hardly any memory is left; the kernel looks for pages all the time",
                "ps aux --sort=-rss | head shows who holds it; lower serving.memory_fraction of what runs",
            )
