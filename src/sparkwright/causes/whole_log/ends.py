"""What nodes and the supervisor report of an outage, as lines of a source that only we write: no log can claim it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import LIKELY
from sparkwright.logscan.story import Row, Story

SOURCE = "the ranks' ends"
# Signals that nothing inside an engine sends to its first process: HUP, INT, KILL, TERM.
_OUTSIDE = (129, 130, 137, 143)


def lines(ended: Sequence[RankStatus], kernels: Mapping[str, bool | None], what: str = "") -> str:
    """kernels: whether a node's kernel has killed for want of memory lately, None where its log cannot be read.

    what: which end came first, as a sentence that begins with the rank.
    """
    failed = any(rank.exit_code not in (0, None, *_OUTSIDE) for rank in ended)
    told = [_line(rank, kernels.get(rank.node), what.startswith(f"{_label(rank)} "), failed) for rank in ended]
    return "".join(f"{line}\n" for line in (what, *told) if line)


def _line(rank: RankStatus, killed: bool | None, first: bool, failed: bool) -> str:
    """first: nothing ended before it; failed: a rank did of its own, and may have had the others ended."""
    label = _label(rank)
    if rank.exit_code == 0:
        return f"{label} left in order (code 0): it follows its peers"
    if (first or not failed) and not rank.oom_killed and not killed and (signal := _signal(rank, first)):
        said = "has no out-of-memory kill" if killed is False else "cannot be read: it may have been out of memory"
        return f"{label} was killed by signal {signal} from outside; the kernel log of {rank.node} {said}"
    return f"{label} {rank.state}: ExitCode={rank.code} OOMKilled={rank.oom_killed}"


def _signal(rank: RankStatus, first: bool) -> int:
    """0 for none. The leader of a process that serves leaves its exit code behind, but for SIGKILL and a reboot."""
    if rank.exit_code in _OUTSIDE:
        return (rank.exit_code or 0) - 128
    return 9 if first and rank.exit_code is None and rank.runtime == "process" else 0


def _label(rank: RankStatus) -> str:
    return f"rank {rank.rank} on {rank.node}"


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A cause that lines of this source show. Implements WholeLogRule."""

    CAUSE: LogCause
    pattern: str
    MARKS: Mapping[str, str] = field(default_factory=dict)
    ROWS: Mapping[str, Row] = field(default_factory=dict)

    def judge(self, stories: tuple[Story, ...]) -> Iterator[Verdict]:
        shows = re.compile(self.pattern)
        lines = [line for story in stories if story.source == SOURCE for line in story.tail if shows.match(line.text)]
        if lines:
            yield Verdict(LIKELY if any("cannot be read" in line.text for line in lines) else CERTAIN, tuple(lines))


CERTAIN = 0.99  # the node itself says so
_FOLLOWS = ("peer-rank-died", "engine-core-died", "container-exits-zero-not-restarted")
_STALLS = ("worker-stopped-answering", "cuda-graph-multinode-collective-deadlock", *_FOLLOWS)

WITNESSED = (
    Witnessed(
        LogCause(
            code="LIVE009",
            key="rank-killed-by-signal",
            title="rank killed by an external signal",
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
                "on its node: sudo journalctl -k -b | grep -iE 'oom|killed process' | tail   # "
                "nothing: it was not memory",
                "sparkwright status   # the supervisor starts all ranks again together",
            ),
            consequences=_FOLLOWS,
        ),
        r"rank \d{1,4} on \S{1,253} was killed by signal \d{1,3} ",
    ),
    Witnessed(
        LogCause(
            code="LIVE010",
            key="node-rebooted",
            title="node rebooted while serving",
            severity=Severity.BLOCK,
            why=(
                "a reboot, a crash of the node or a power cut ends its ranks; the others only lose their peer. What "
                "logs show from before is no cause of that."
            ),
            fix=(
                "on the node: last -x reboot shutdown | head   # no shutdown before the reboot: a crash or the power",
                "on the node: sudo journalctl -b -1 -e   # how the boot before ended",
            ),
            consequences=("rank-killed-by-signal", *_FOLLOWS),
        ),
        r".{0,300} (?:was|were) rebooted$",
    ),
    Witnessed(
        LogCause(
            code="LIVE011",
            key="rank-stopped",
            title="process of a rank was stopped",
            severity=Severity.BLOCK,
            why=(
                "a stopped process (state T: SIGSTOP, a debugger, `docker pause`) neither computes nor ends, and the "
                "other ranks wait for it. No engine stops itself: a person or a tool did."
            ),
            fix=(
                "on its node, who was there and what ran: last -F | head; ps -eo pid,stat,lstart,args | grep ' T'",
                "sparkwright status   # the supervisor starts all ranks again together; kill -CONT PID lets one go on",
            ),
            consequences=_STALLS,
        ),
        r"rank \d{1,4} on \S{1,253}: (?:process \d{1,10} \(.{0,64}\) is stopped |its container is paused )",
    ),
    Witnessed(
        LogCause(
            code="LIVE012",
            key="state-disk-full",
            title="disk full when the rank ended",
            severity=Severity.BLOCK,
            why=(
                "an engine that cannot write (logs, compiled kernels, temporary files) fails with ENOSPC, and does not "
                "always report it. The supervisor saw no room on that node when the rank ended of its own."
            ),
            fix=(
                "on the node: df -h ~ /tmp /var; du -xhd1 ~ | sort -h | tail",
                "sparkwright status   # shows the node and what is left",
            ),
            consequences=_FOLLOWS,
        ),
        r"disk full on \S{1,253}: .{0,200}; rank \d{1,4} ended there$",
    ),
)
