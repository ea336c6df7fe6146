"""CUDA graph capture hangs at the first batch size: a log that ends at `0/N` of the capture's progress bar."""

import re
from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.causes.whole_log import live003_spin
from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import POSSIBLE
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE004",
    key="cuda-graph-multinode-collective-deadlock",
    title="CUDA graph capture hangs at the first batch size",
    severity=Severity.BLOCK,
    why=(
        "the graph holds a collective, and both ranks spin in it: it was seen to stay at 0/36 for 34 minutes "
        "with two busy GPUs. The first size may also compile kernels for minutes, and a log that was cut "
        "there looks the same: dmon shows which."
    ),
    fix=(
        "on each node: nvidia-smi dmon -s u -c 5   # sm above 90 with mem 0: it spins, and never ends",
        *live003_spin.CAUSE.fix,
    ),
    see=("https://github.com/sgl-project/sglang/issues/19991",),
)
MARKS = {"capture begins": r"Capturing (?:batches|CUDA graphs?)\b.{0,120}\b0/\d+ \[00:00<\?, "}
ROWS: dict[str, Row] = {}
_AFTER = 4
_NEXT = re.compile(r"\b[1-9]\d*/\d+ \[")


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        begun = story.marks.get("capture begins")
        if begun and story.ended and story.lines - begun.last.number <= _AFTER and not _goes_on(story, begun.last):
            yield Verdict(POSSIBLE, (begun.last,))


def _goes_on(story: Story, begun: Proof) -> bool:
    """Whether a later size was captured, in that line (bars are often one) or below it."""
    return any(_NEXT.search(line.text) for line in (begun, *story.tail) if line.number >= begun.number)
