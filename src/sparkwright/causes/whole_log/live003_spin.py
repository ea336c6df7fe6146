"""The GPU spins: busy, and no memory is read: rows of `nvidia-smi dmon` with SM utilization of 90 % and more
with memory utilization of 0 or 1 %."""

from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import LIKELY
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE003",
    key="cuda-graph-multinode-collective-deadlock",
    title="GPU spins in a collective",
    severity=Severity.BLOCK,
    why=(
        "kernels of a collective wait for the other rank in a loop; decoding would read weights all the "
        "time. Somebody watched this for 34 minutes in CUDA-graph capture over two nodes; it never ends."
    ),
    fix=(
        "sparkwright down {deployment}   # waiting does not help",
        "SGLang: --disable-cuda-graph (SGLANG_DISABLE_CUDA_GRAPH has no effect in 0.5.12)",
        'vLLM: --compilation-config \'{{"cudagraph_mode": "NONE"}}\', or --enforce-eager for a test',
        "every node: nvidia-smi --query-gpu=driver_version --format=csv,noheader   "
        "# 590.x deadlocks in capture on GB10",
    ),
    see=("https://github.com/sgl-project/sglang/issues/19991",),
)
MARKS = {"dmon": r"# gpu\b.*\bsm\s+mem\b"}
ROWS = {
    "spinning": Row("dmon", rb"^[ \t]*\d+(?:[ \t]+[\d-]+){0,3}?[ \t]+(?:9\d|100)[ \t]+[01](?:[ \t]+[\d-]+)*[ \t]*$"),
    "working": Row("dmon", rb"^[ \t]*\d+[ \t]+\d+[ \t]+(?:[2-9]|\d\d+)(?:[ \t]+[\d-]+)*[ \t]*$"),
}
_ROWS = 2


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        spinning = story.marks.get("spinning")
        if spinning and spinning.count >= _ROWS and story.count("working") <= spinning.count // 4:
            yield Verdict(LIKELY, (spinning.first, spinning.last))
