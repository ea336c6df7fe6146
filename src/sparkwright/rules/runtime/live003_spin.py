"""The GPU spins: busy, and no memory is read.

Detects: rows of `nvidia-smi dmon` with SM utilization of 90 % and more beside memory utilization of 0 or 1 %.
Why: kernels of a collective wait for the other rank in a loop; decoding would read weights all the time. Somebody
  watched this for 34 minutes in CUDA-graph capture over two nodes; it never ends.
Evidence: the rows.
Remedy: stop all ranks; start without CUDA graphs over nodes (SGLang: the flag, not the variable), or with an engine
  version and driver that capture them.
References: seed 001; https://github.com/sgl-project/sglang/issues/19991
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Severity
from sparkwright.rules.log_rule import Row, Story, Verdict
from sparkwright.rules.sign import LIKELY

CODE = "LIVE003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GPU spins in a collective: SM busy, memory idle"
CAUSE = "cuda-graph-multinode-collective-deadlock"
MARKS = {"dmon": r"# gpu\b.*\bsm\s+mem\b"}
ROWS = {
    "spinning": Row("dmon", rb"^[ \t]*\d+(?:[ \t]+[\d-]+){0,3}?[ \t]+(?:9\d|100)[ \t]+[01](?:[ \t]+[\d-]+)*[ \t]*$"),
    "working": Row("dmon", rb"^[ \t]*\d+[ \t]+\d+[ \t]+(?:[2-9]|\d\d+)(?:[ \t]+[\d-]+)*[ \t]*$"),
}
FIX = (
    "sparkwright down {deployment}   # waiting does not help",
    "SGLang: --disable-cuda-graph (SGLANG_DISABLE_CUDA_GRAPH has no effect in 0.5.12)",
    'vLLM: --compilation-config \'{{"cudagraph_mode": "NONE"}}\', or --enforce-eager for a test',
    "every node: nvidia-smi --query-gpu=driver_version --format=csv,noheader   # 590.x deadlocks in capture on GB10",
)
EXPLAINS = ()
_ROWS = 2


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        spinning = story.marks.get("spinning")
        if spinning and spinning.count >= _ROWS and story.count("working") <= spinning.count // 4:
            yield Verdict(LIKELY, (spinning.first, spinning.last))
