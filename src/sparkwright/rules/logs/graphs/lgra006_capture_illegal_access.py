"""Graph capture fails with an illegal memory access.

Detects: an illegal access when a CUDA graph is closed.
Why: NCCL's host-staged all-reduce (GB10 has no GPUDirect) is captured in global mode, or ranks reach the end of
  capture in different steps.
Evidence: the access error at capture_end, with more than one node.
Remedy: piecewise or no graphs.
References: vLLM issues 46253, 46372; field guide E68
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LGRA006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "graph capture fails with an illegal memory access"
CAUSE = "graph-capture-illegal-access-multinode"
SIGNS = (
    near(
        r"breakable_cudagraph|capture_end\(?\)?|cudaStreamEndCapture",
        r"illegal memory access|cudaErrorIllegalAddress|IllegalAddress",
        sure=LIKELY,
        within=12,
    ),
    line(
        r"operation failed due to a previous error during capture|cudaErrorStreamCaptureInvalidated"
        r"|CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        POSSIBLE,
    ),
    line(r"cudaErrorStreamCaptureUnsupported|operation not permitted when stream is capturing", POSSIBLE),
)
FIX = (
    "--enforce-eager shows that capture is the reason",
    '--compilation-config \'{{"cudagraph_mode": "PIECEWISE"}}\'',
    (
        "a build with vLLM pull requests for issues 46253 and 46372 (thread-local capture mode and a barrier between "
        "ranks)"
    ),
)
EXPLAINS = ()
