"""A worker does not answer any more: a log that ends with ten and more of vLLM's minutes of waiting for a
worker's answer."""

from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import POSSIBLE
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE008",
    key="worker-stopped-answering",
    title="worker unresponsive for ten minutes or more",
    severity=Severity.BLOCK,
    why=(
        "one line, or some, come while workers compile or load. Ten at the end are a hang: a rank that died "
        "or froze, FlashInfer's autotuning on one rank only, ranks that do not do the same step."
    ),
    fix=(
        "the logs of all ranks, named together: sparkwright diagnose head.log worker.log",
        "on each node: nvidia-smi dmon -s u -c 5   # sm above 90 with mem 0: it spins; 0 on one node: look there first",
        "on each node: py-spy dump --pid <worker pid>   # where it is",
        "sparkwright down {deployment} && sparkwright up {recipe}   # FlashInfer: --no-enable-flashinfer-autotune",
    ),
    consequences=("benign-shm-broadcast-wait",),
)
MARKS = {"worker waits": r"No available shared memory broadcast block found"}
ROWS: dict[str, Row] = {}
_MANY = 10
_AFTER = 4


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        waits = story.marks.get("worker waits")
        if waits and waits.count >= _MANY and story.lines - waits.last.number <= _AFTER:
            yield Verdict(POSSIBLE, (waits.first, waits.last))
