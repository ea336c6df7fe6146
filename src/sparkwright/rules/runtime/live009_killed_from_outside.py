"""A signal from outside of the engine ended a rank.

Detects: a rank that SIGKILL, SIGTERM, SIGINT or SIGHUP ended while it served, as its node tells it.
Why: no engine ends itself so while it answers: a person, a script (pkill, a service manager, a scheduler) or a tool
  sent it. The kernel's out-of-memory killer sends SIGKILL, too, and writes that to the kernel log: where that log can
  be read and has no such line, it was not memory. What other ranks print after it follows from it.
Evidence: the exit code, 128 and the signal's number, and the kernel log of the node.
Remedy: find who sent it; the ranks are started again together.
References: signal(7); a drill that killed rank 1 of a simulated engine with SIGKILL
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Severity
from sparkwright.rules.log_rule import Row, Story, Verdict
from sparkwright.rules.runtime.ends import SOURCE
from sparkwright.rules.sign import LIKELY

CODE = "LIVE009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a rank was killed by a signal from outside the engine"
CAUSE = "rank-killed-by-signal"
MARKS: dict[str, str] = {}
ROWS: dict[str, Row] = {}
FIX = (
    "on its node, who was there and what ran: last -F | head; sudo journalctl --since -10min | grep -iE 'kill|sudo'",
    "on its node: sudo journalctl -k -b | grep -iE 'oom|killed process' | tail   # nothing: it was not memory",
    "sparkwright status   # the supervisor starts all ranks again together",
)
EXPLAINS = ("peer-rank-died", "engine-core-died", "container-exits-zero-not-restarted")
_KILLED = re.compile(r"rank \d{1,4} on \S{1,253} was killed by signal \d{1,3} ")
_CERTAIN = 0.99  # the node itself says so


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    lines = [line for story in stories if story.source == SOURCE for line in story.tail if _KILLED.match(line.text)]
    if lines:
        yield Verdict(_CERTAIN if all("cannot be read" not in line.text for line in lines) else LIKELY, tuple(lines))
