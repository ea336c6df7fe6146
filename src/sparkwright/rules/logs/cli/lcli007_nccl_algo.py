"""NCCL_ALGO or NCCL_PROTO leaves a collective without an algorithm.

Detects: A collective that NCCL refuses as invalid usage while NCCL_ALGO or NCCL_PROTO is set.
Why: tree exists for AllReduce only; a value without a prefix applies to all collectives, and since 2.31 a named one
  switches the others off.
Evidence: NCCL's line that no algorithm or protocol is available.
Remedy: Unset the variables.
References: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-algo;
  https://github.com/NVIDIA/nccl/issues/317
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LCLI007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "NCCL_ALGO or NCCL_PROTO leaves a collective without an algorithm"
CAUSE = "nccl-algo-env-unsupported"
SIGNS = (
    line(r"No algorithm/protocol.{0,40} available for function", CERTAIN),
    line(r"NCCL_ALGO was set to (?P<value>\S+)", CERTAIN),
    line(r"NCCL_PROTO was set to (?P<proto>\S+)", CERTAIN),
    near(
        r"NCCL_ALGO\W{1,3}\w+",
        r"invalid usage|ncclInvalidUsage|boot fails|no algorithm|rejects?\b|DistBackendError",
        sure=0.85,
        within=4,
    ),
    line(r"NCCL_(?:ALGO|PROTO)\b.{0,100}(?:unsupported|not supported|invalid|unset it|breaks|hang|fails)", LIKELY),
    line(
        r"Error(?:: invalid usage| 5).{0,60}while.{0,40}NCCL_ALGO|Invalid NCCL_(?:ALGO|PROTO)"
        r"|Failed to parse.{0,40}NCCL_ALGO",
        CERTAIN,
    ),
    line(
        r"Function \w+ doesn't support (?:algorithm|protocol)|algorithm \w+ (?:is )?not supported for (?:f"
        r"unction|datatype)",
        LIKELY,
    ),
)
FIX = (
    (
        "on every node: env | grep -E 'NCCL_(ALGO|PROTO)'; grep -E 'NCCL_(ALGO|PROTO)' /etc/nccl.conf "
        "~/.nccl.conf   # also inside the container"
    ),
    "unset NCCL_ALGO NCCL_PROTO",
)
EXPLAINS = ()
