"""The remote rpc-server of llama.cpp cannot run an operation and ends.

Detects: clients that lose their rpc-server, and tensors in an RPC buffer that cannot run an operation.
Why: the remote back end lacks the kernel (K cache quantized without V, a new architecture, no memset over RPC), aborts
  on an assertion, and the client only sees the closed socket.
Evidence: the client's line; the assertion itself is in the log of the rpc-server.
Remedy: read that log; the same build on all nodes, with all quantizations.
References: field guide C5; https://github.com/ggml-org/llama.cpp/pull/14076
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LCLU002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the remote rpc-server cannot run an operation of this model"
CAUSE = "llamacpp-rpc-model-op-unsupported"
SIGNS = (
    line(r"remote RPC server crashed or returned malformed response", LIKELY),
    line(r"in a buffer \(RPC.{0,60}cannot run the operation", CERTAIN),
    line(r"iface\.memset_tensor != NULL", CERTAIN),
    line(r"ggml-rpc.{0,40}GGML_ASSERT|GGML_ASSERT.{0,80}\brpc\b", LIKELY),
    near(
        r"rpc-server|ggml[-_]rpc|RPC server|--rpc\b",
        r"GGML_ASSERT|unsupported op|not supported|unsupported (?:type|operation|tensor)|fatal error|Aborted"
        r"|null buffer for tensor",
        sure=LIKELY,
        within=6,
        unless=r"version mismatch|self-listed|Segmentation",
    ),
    line(r"null buffer for tensor passed to|\binvalid data ptr\b", LIKELY),
    line(r"ggml_backend_rpc_.{0,80}(?:abort|fail|crash)", LIKELY),
    near(
        r"op not supported \S+ \(\w+\)", r"rpc-server|ggml-rpc|ggml_rpc|RPC\[|--rpc|RPC server", sure=LIKELY, within=40
    ),
    line(r"op not supported \S+ \(\w+\)", POSSIBLE),
    line(
        r"(?:rpc-server|ggml-rpc|RPC (?:server|backend|worker|node)s?).{0,80}(?:crash|abort|dies\b)",
        LIKELY,
        unless=r"version|out of memory",
    ),
    line(r"RPC.{0,30}does not (?:support|implement).{0,60}(?:op|tensor|quant|memset)", LIKELY),
    line(r"(?:rpc|RPC)\w*\W.{0,60}unsupported op\b|unsupported op\b.{0,60}\b(?:rpc|RPC)", LIKELY),
)
FIX = (
    "read the end of the rpc-server's own log on the other node: it names the operation",
    "-ctk q8_0 -ctv q8_0   # both or none",
    "build all nodes from one commit with -DGGML_CUDA_FA_ALL_QUANTS=ON -DGGML_RPC=ON",
)
EXPLAINS = ()
