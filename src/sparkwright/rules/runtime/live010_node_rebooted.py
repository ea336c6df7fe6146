"""A node was rebooted while it served.

Detects: a rank that is over on a node whose boot marker is another one than before.
Why: a reboot, a crash of the node or a power cut ends its ranks; the others only lose their peer. What logs say from
  before is no cause of that.
Evidence: /proc/sys/kernel/random/boot_id, as the supervisor noted it and as it is now.
Remedy: nothing, when somebody rebooted it; otherwise the end of the previous boot's journal.
References: random(4); a drill that rebooted the head of two nodes
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Severity
from sparkwright.rules.log_rule import Row, Story, Verdict
from sparkwright.rules.runtime.ends import SOURCE

CODE = "LIVE010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a node was rebooted while it served"
CAUSE = "node-rebooted"
MARKS: dict[str, str] = {}
ROWS: dict[str, Row] = {}
FIX = (
    "on the node: last -x reboot shutdown | head   # no shutdown before the reboot: a crash or the power",
    "on the node: sudo journalctl -b -1 -e   # how the boot before ended",
)
EXPLAINS = ("rank-killed-by-signal", "peer-rank-died", "engine-core-died", "container-exits-zero-not-restarted")
_REBOOTED = re.compile(r".{0,300} (?:was|were) rebooted$")
_CERTAIN = 0.99  # the node itself says so


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    lines = [line for story in stories if story.source == SOURCE for line in story.tail if _REBOOTED.match(line.text)]
    if lines:
        yield Verdict(_CERTAIN, tuple(lines))
