"""A worker does not answer any more.

Detects: a log that ends with ten and more of vLLM's minutes of waiting for a worker's answer.
Why: one line, or some, come while workers compile or load. Ten at the end are a hang: a rank that died or froze,
  FlashInfer's autotuning on one rank only, ranks that do not do the same step.
Evidence: the first and the last of these lines.
Remedy: look at all ranks and their GPUs; then stop all of them.
References: gb10.md E40, E54
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Severity
from sparkwright.rules.log_rule import Row, Story, Verdict
from sparkwright.rules.sign import POSSIBLE

CODE = "LIVE008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a worker has not answered for ten minutes or more"
CAUSE = "worker-stopped-answering"
MARKS = {"worker waits": r"No available shared memory broadcast block found"}
ROWS: dict[str, Row] = {}
FIX = (
    "the logs of all ranks, named together: sparkwright diagnose head.log worker.log",
    "on each node: nvidia-smi dmon -s u -c 5   # sm above 90 beside mem 0: it spins; 0 on one node: look there first",
    "on each node: py-spy dump --pid <worker pid>   # where it stands",
    "sparkwright down {deployment} && sparkwright up {recipe}   # FlashInfer: --no-enable-flashinfer-autotune",
)
EXPLAINS = ("benign-shm-broadcast-wait",)
_MANY = 10
_AFTER = 4


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        waits = story.marks.get("worker waits")
        if waits and waits.count >= _MANY and story.lines - waits.last.number <= _AFTER:
            yield Verdict(POSSIBLE, (waits.first, waits.last))
