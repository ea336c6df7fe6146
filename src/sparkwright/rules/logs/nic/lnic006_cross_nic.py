"""NCCL pairs RoCE ports that have no path to each other.

Detects: `ibv_modify_qp` that fails with a timeout, no route or an unreachable network on the way from INIT to RTR.
Why: NCCL pairs devices by index, or any with any, across nodes. Where each cable or rail is a network of its own
  (crossed cables, rings, rail-only switches) some pairs have no path; routed RoCE does not work between Sparks.
Evidence: NCCL's line with errno 110, 101 or 113.
Remedy: two nodes: equal ports and one order of devices; rings: the variables for rings, or one rail.
References: field guide B1, E33; https://github.com/NVIDIA/nccl/issues/2013
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LNIC006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "NCCL pairs network ports that cannot reach each other"
CAUSE = "nccl-cross-nic-unroutable-rails"
_QP = r"ibv_modify_qp"
SIGNS = (
    line(
        r"ibv_modify_qp failed with (?:error )?(?:\d+ )?(?:Connection timed out|No route to host"
        r"|Network is unreachable)",
        LIKELY,
        unless=r"local GID (?:index \d+, local GID )?(?:fe80|::,|:: )",
    ),
    line(r"ibv_modify_qp\W{0,6}(?:errno |error )?(?:110|101|113)\b", LIKELY),
    near(
        _QP,
        r"cross[-_ ]?nic|rail|a ring|接线|线缆|配对|not (?:on|in) (?:the )?same (?:cable|subnet)|wrong port|pairs?\b",
        sure=LIKELY,
        within=2,
    ),
    line(r"NCCL_CROSS_NIC.{0,80}(?:timeout|timed out|unreachable|fail|hang|no route)", LIKELY),
    near(
        r"rail-only|per-rail|rail-optimi[sz]ed|different rails?",
        r"timed out|unreachable|ibv_modify_qp|cannot reach|no route",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"routed RoCE|non-adjacent|not directly (?:cabled|connected)",
        r"ibv_modify_qp|timed out|unreachable",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "two nodes: equal ports; on each node: rdma link && ip -br -4 addr   # equal subnets on equal ports",
    "NCCL_IB_HCA={hca}   # on each node the devices of one cable, in the same order",
    "ring: port 0 of each node to port 1 of the next, NCCL_IB_SUBNET_AWARE_ROUTING=1; or a switch",
)
EXPLAINS = ("peer-rank-died", "rank-restart-race-tcpstore", "engine-ready-timeout-too-short")
