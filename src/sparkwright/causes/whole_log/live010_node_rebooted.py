"""A node was rebooted while it served: a rank that is over on a node whose boot marker is another one than
before."""

import re
from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.causes.whole_log.ends import SOURCE
from sparkwright.domain.finding import Severity
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE010",
    key="node-rebooted",
    title="a node was rebooted while it served",
    severity=Severity.BLOCK,
    why=(
        "a reboot, a crash of the node or a power cut ends its ranks; the others only lose their peer. What "
        "logs say from before is no cause of that."
    ),
    fix=(
        "on the node: last -x reboot shutdown | head   # no shutdown before the reboot: a crash or the power",
        "on the node: sudo journalctl -b -1 -e   # how the boot before ended",
    ),
    consequences=("rank-killed-by-signal", "peer-rank-died", "engine-core-died", "container-exits-zero-not-restarted"),
)
MARKS: dict[str, str] = {}
ROWS: dict[str, Row] = {}
_REBOOTED = re.compile(r".{0,300} (?:was|were) rebooted$")
_CERTAIN = 0.99  # the node itself says so


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    lines = [line for story in stories if story.source == SOURCE for line in story.tail if _REBOOTED.match(line.text)]
    if lines:
        yield Verdict(_CERTAIN, tuple(lines))
