"""A signal from outside of the engine ended a rank: a rank that SIGKILL, SIGTERM, SIGINT or SIGHUP ended while
it served, as its node tells it."""

import re
from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.causes.whole_log.ends import SOURCE
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import LIKELY
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE009",
    key="rank-killed-by-signal",
    title="a rank was killed by a signal from outside the engine",
    severity=Severity.BLOCK,
    why=(
        "no engine ends itself so while it answers: a person, a script (pkill, a service manager, a "
        "scheduler) or a tool sent it. The kernel's out-of-memory killer sends SIGKILL, too, and writes "
        "that to the kernel log: where that log can be read and has no such line, it was not memory. What "
        "other ranks print after it follows from it."
    ),
    fix=(
        "on its node, who was there and what ran: last -F | head; "
        "sudo journalctl --since -10min | grep -iE 'kill|sudo'",
        "on its node: sudo journalctl -k -b | grep -iE 'oom|killed process' | tail   # nothing: it was not memory",
        "sparkwright status   # the supervisor starts all ranks again together",
    ),
    consequences=("peer-rank-died", "engine-core-died", "container-exits-zero-not-restarted"),
)
MARKS: dict[str, str] = {}
ROWS: dict[str, Row] = {}
_KILLED = re.compile(r"rank \d{1,4} on \S{1,253} was killed by signal \d{1,3} ")
_CERTAIN = 0.99  # the node itself says so


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    lines = [line for story in stories if story.source == SOURCE for line in story.tail if _KILLED.match(line.text)]
    if lines:
        yield Verdict(_CERTAIN if all("cannot be read" not in line.text for line in lines) else LIKELY, tuple(lines))
