"""The node moves pages to or from swap now.

Detects: pswpin or pswpout of a GB10's /proc/vmstat grew by more than 1024 pages (4 MiB) within 0.4 s. Swap that is
  used and rests does no harm, and neither do some pages that come back.
Why: CPU and GPU share the memory: once an engine's pages move to disk, each token waits for the disk, and the machine
  may freeze.
Evidence: pages in and out, and the time.
Remedy: free memory before you start anything; a lower memory fraction.
References: https://github.com/Reederey87/dgx-spark-2x-deepseek-v4-flash (three ticks of 256 pages each are its
  warning; this is one sample).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the node is swapping"

_PAGES = 1024


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        activity = known(facts.activity)
        moved = [known(activity.swapped_in) or 0, known(activity.swapped_out) or 0] if activity else [0, 0]
        if activity and max(moved) > _PAGES:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the node is swapping",
                f"/proc/vmstat: {moved[0]} pages in, {moved[1]} out within {activity.seconds:g} s",
                "more memory is in use than there is; GPU memory is part of it",
                "ps aux --sort=-rss | head shows who holds it; lower serving.memory_fraction of what runs",
            )
