"""UCX has no transport that can carry active messages to the peer.

Detects: `no active messages transport`, other missing transports, NIXL's backend error at the start.
Why: UCX_TLS or UCX_NET_DEVICES leaves out tcp, self or lo, so that even the endpoint to the own process has no way.
Evidence: UCX's line; NIXL only says NIXL_ERR_BACKEND.
Remedy: add what is missing, or unset both variables.
References: https://github.com/sgl-project/sglang/pull/40641; https://github.com/openucx/ucx/issues/4742
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LRDM003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "UCX_TLS or UCX_NET_DEVICES leaves out a transport that UCX needs"
CAUSE = "ucx-tls-lacks-am-transport"
SIGNS = (
    line(
        r"no (?:active messages?|auxiliary|copy across memory types|remote registered memory access"
        r"|am emulation) transport",
        0.8,
    ),
    line(r"UCX +ERROR.{0,20}no .{0,40}transport to ", LIKELY),
    line(r"no am bcopy|no peer failure handler", LIKELY),
    line(r"UCX +(?:WARN|ERROR).{0,20}transports? .{0,80}(?:is|are) not available", LIKELY),
    line(r"UCX +ERROR.{0,60}no usable transports|no usable transports/devices", LIKELY),
    line(
        r"UCX_TLS.{0,120}(?:omits?|lacks?|without|missing|does not (?:include|list|contain)|leaves out|excludes?)",
        LIKELY,
    ),
    near(
        r"NIXL_ERR_BACKEND",
        r"\bdies |\bstartup|createBackend|create_backend|endpoint|\bUCX_|loadRemoteMD|registerMem",
        sure=LIKELY,
        within=4,
    ),
    line(r"NIXL_ERR_BACKEND", POSSIBLE),
    line(
        r"(?:ucp_ep_create|connection request failed on listener|ucp_worker).{0,80}Destination is unreachable", POSSIBLE
    ),
)
FIX = (
    "unset UCX_TLS   # or add what is missing: UCX_TLS=rc,tcp,self,sm,cuda_copy,cuda_ipc",
    "UCX_NET_DEVICES=rocep1s0f0:1,{iface},lo   # lo carries the endpoint to the own process",
)
EXPLAINS = ()
