"""What nodes and the supervisor report of an outage, as lines of a source that only we write: no log can claim it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from sparkwright.causes.cause import Verdict
from sparkwright.domain.facts import RankStatus
from sparkwright.logscan.sign import LIKELY, Story

SOURCE = "the ranks' ends"
CERTAIN = 0.99  # the node itself reports it
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


def showing(pattern: str) -> Callable[[tuple[Story, ...]], Iterator[Verdict]]:
    """Judges by lines of this source that match."""
    shows = re.compile(pattern)

    def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
        lines = [line for story in stories if story.source == SOURCE for line in story.tail if shows.match(line.text)]
        if lines:
            yield Verdict(LIKELY if any("cannot be read" in line.text for line in lines) else CERTAIN, tuple(lines))

    return judge
