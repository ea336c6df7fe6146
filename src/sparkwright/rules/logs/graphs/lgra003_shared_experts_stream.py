"""Marlin MoE and the shared experts block each other on two streams.

Detects: a deadlock of MoE models with shared experts, mostly with two or more requests.
Why: vLLM runs the shared experts on a second CUDA stream. Marlin's MoE kernel is not safe there: its locks wait for
  blocks that the other stream keeps from running. Across nodes the pair stops.
Evidence: reports that name the stream; logs show only the waiting queue.
Remedy: one stream.
References: vLLM pull requests 28406, 28410; MiaAI-Lab/DeepSeek-v4.1-Flash-EXL3 issue 22
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LGRA003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Marlin MoE and the shared experts block each other on two streams"
CAUSE = "marlin-moe-multi-stream-deadlock"
SIGNS = (
    line(r"VLLM_DISABLE_SHARED_EXPERTS_STREAM|SERIAL_STREAMS=", LIKELY),
    near(
        r"shared[- _]?experts?",
        r"(?:aux|auxiliary|second|separate|dual|parallel|multi\w*|two|own"
        r"|different)[- _]?(?:cuda[- _]?)?streams?|streams? overlap|overlap",
        r"deadlock|\bhangs?\b|wedge[sd]?\b|illegal memory|race\b|not (?:be )?safe|corrupt",
        sure=LIKELY,
        within=4,
    ),
    near(
        r"marlin",
        r"multi-?(?:ple )?(?:cuda )?streams?|two streams|second (?:cuda )?stream|aux(?:iliary)? stream",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"(?:two|2) concurrent requests",
        r"deadlock|wedge[sd]?\b|\bhangs? the pair",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "export VLLM_DISABLE_SHARED_EXPERTS_STREAM=1 on every node",
    "vLLM with pull request 28410 does this for Marlin by itself",
)
EXPLAINS = ()
