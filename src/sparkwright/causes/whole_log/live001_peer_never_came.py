"""The head waits for a rank that never comes: rank 0 of several opened its rendezvous, nothing shows that the
others joined, and the log ends there."""

from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import LIKELY, POSSIBLE
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE001",
    key="peer-never-joined",
    title="rank never joined",
    severity=Severity.BLOCK,
    why=(
        "vLLM 0.21.0 prints no line while it waits: seen for as long as it was watched. The other rank was "
        "not started, died before it got there, or cannot reach the head's address and port. A log that was "
        "cut there looks the same."
    ),
    fix=(
        "sparkwright logs {deployment} --rank 1 --tail 200   # is the other rank there, and what does it show?",
        "on the other node: nc -vz {head} {port}   # the head's rendezvous port (vLLM: --master-port)",
    ),
)
MARKS = {
    "head opens": r"world_size=(?:[2-9]|\d\d+) rank=0 .*distributed_init_method=",
    "worker opens": r"world_size=(?:[2-9]|\d\d+) rank=[1-9]\d* .*distributed_init_method=",
    "ranks joined": r"vLLM is using nccl==|NCCL version \d|init torch distributed ends|in world size \d+ is assigned",
}
ROWS: dict[str, Row] = {}
_AFTER = 4  # lines that torch may print between the rendezvous and the wait


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    others = any(story.count("worker opens") for story in stories)
    for story in stories:
        opened = story.marks.get("head opens")
        waits = (
            opened and story.ended and not story.count("ranks joined") and story.lines - opened.last.number <= _AFTER
        )
        if opened and waits:
            yield Verdict(POSSIBLE if others else LIKELY, (opened.last, *story.tail[-1:]))
