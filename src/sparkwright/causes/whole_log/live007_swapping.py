"""The host swaps while it serves: rows of `vmstat` with more than 1,000 blocks a second swapped in or out, three
times or more."""

from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import POSSIBLE
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE007",
    key="gpu-memory-utilization-too-high-unified",
    title="host is swapping under memory pressure",
    severity=Severity.WARN,
    why=(
        "GPU and host share the pool; what the engine took is missing for the host, which moves its own "
        "pages out and in again. It comes before the freeze. Swap that is full but still (si and so 0) is "
        "no sign of anything."
    ),
    fix=(
        "--gpu-memory-utilization lower by 0.05   # SGLang: --mem-fraction-static",
        "sparkwright plan {recipe}   # what is left for the host on each node",
        "free -g; ps -eo rss,comm --sort=-rss | head   # on {node}: what else is there that could stop",
    ),
)
MARKS = {"vmstat": r"\bswpd\s+free\s+buff\s+cache\s+si\s+so\b"}
_COUNTS = rb"^[ \t]*\d+[ \t]+\d+(?:[ \t]+\d+){4}[ \t]+"
ROWS = {"swaps": Row("vmstat", _COUNTS + rb"(?:\d{4,}[ \t]+\d+|\d+[ \t]+\d{4,})(?:[ \t]+\d+){2}[ \t]+\d+")}
_ROWS = 3  # the first row of vmstat tells of the time since boot


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        rows = story.marks.get("swaps")
        if rows and rows.count >= _ROWS:
            yield Verdict(POSSIBLE, (rows.first, rows.last))
