"""NCCL picks its RoCE devices itself.

Detects: all four RoCE devices in a list, a hang without a line, ~3 GB/s with only the bootstrap interface set.
Why: a Spark shows each port as two RDMA devices and also lists those of the empty cage. Without NCCL_IB_HCA NCCL may
  take a device that does not lead to the peer (silent deadlock) or only one half of the port.
Evidence: the device list, or the figure together with what was set.
Remedy: NCCL_IB_HCA with both devices of the cabled port.
References: seed 002; field guide B4, B5; https://github.com/NVIDIA/dgx-spark-playbooks/issues/102
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LNIC004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "NCCL_IB_HCA does not name the devices of the cabled port"
CAUSE = "nccl-ib-hca-not-pinned"
_SLOW = r"(?:~|≈|about |only |at |around )\**(?:2\.[5-9]|3(?:\.\d+)?) ?(?-i:GB/s)"
_NO_HCA = (
    r"NCCL_IB_HCA.{0,50}(?:unset|not set|missing|never|without|unpinned|not pinned|must be|should be"
    r"|mandatory|required)"
)
SIGNS = (
    line(r"\bIB_IF\b\W{1,4}(?:roce\w+,){3}roce\w+", LIKELY),
    line(r"NCCL_IB_HCA\W{1,4}(?:roce\w+(?::1)?,){3}roce", HINT, unless=r"SUBNET_AWARE"),
    line(r"NET/IB : Using (?:\[\d\]roce\w+:1/RoCE ){4}", HINT),
    line(r"attempted to merge incompatible devices", LIKELY),
    near(r"NCCL_IB_HCA", r"卡死|卡住|挂起|死锁|未设置|没有设置", sure=LIKELY, within=2),
    near(_NO_HCA, r"hang|deadlock|stuck|silent|freez|slow|GB/s|Gb/s|wrong", sure=LIKELY, within=2),
    near(
        r"(?:without|not|unless|missing|no) (?:\w+ ){0,2}pin(?:ning|ned)\b.{0,60}(?:RoCE|HCA|rdma|infiniband)",
        r"hang|hung|deadlock|stuck|silent|freez",
        sure=LIKELY,
        within=1,
    ),
    near(
        r"NCCL_IB_HCA|RoCE (?:device|interface|NIC)s?",
        r"deadlocks?.{0,20}silent|silent(?:ly)?.{0,20}(?:hang|deadlock)",
        sure=LIKELY,
        within=1,
    ),
    near(r"all_gather|all_reduce|busbw|nccl-tests", _SLOW, sure=POSSIBLE, within=2),
    near(r"plateau|capped|regardless of buffer", _SLOW, sure=POSSIBLE, within=2),
    near(r"NCCL_SOCKET_IFNAME.{0,60}(?:only|bootstrap)", r"NCCL_IB_HCA|GB/s", sure=POSSIBLE, within=3),
    line(
        r"(?:hang|stuck|deadlock|slow|fail)\w* (?:unless|without|until) .{0,12}NCCL_IB_HCA"
        r"|NCCL_IB_HCA (?:is |was )?(?:unset|not set|missing|empty)|(?:setting|set|pin\w*"
        r"|export) NCCL_IB_HCA.{0,60}(?:fixes|fixed|solves|solved|cures|helps|works)",
        LIKELY,
    ),
    line(
        r"(?:all|both|four|every|several) (?:\w+ )?(?:RoCE|IB|RDMA|HCA|mlx5) ?(?:devices|ports|HCAs|NICs"
        r"|functions)?\b.{0,80}(?:only one|one is|not cabled|uncabled|without (?:a )?cable|down|stall|hang"
        r"|unplugged)",
        LIKELY,
        unless=r"half",
    ),
)
FIX = (
    "rdma link   # on each node: the two devices that are ACTIVE on the cabled port",
    "on each node: export NCCL_IB_HCA={hca}   # for the first port: rocep1s0f0,roceP2p1s0f0",
    "NCCL_NET=IB   # an error instead of a silent fall-back to TCP",
)
EXPLAINS = ("engine-ready-timeout-too-short",)
