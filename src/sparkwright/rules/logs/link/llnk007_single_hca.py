"""Only one of the two halves of the port is used.

Detects: 92 to 112 Gb/s or 10 to 14 GB/s where both halves give twice as much.
Why: a Spark shows one cable as two RDMA devices on two PCIe roots of ~100 Gb/s. With one address, one device in
  NCCL_IB_HCA, without merging, or with two cables and not all four interfaces addressed, half of it idles.
Evidence: the figure of a benchmark; an average over small sizes is not one.
Remedy: address both halves and list both devices.
References: field guide B1, B5, B6
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LLNK007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "only one half of the fabric port carries data"
CAUSE = "single-hca-half-bandwidth"
SIGNS = (
    line(
        r"(?:bandwidth|busbw|all_gather|all_reduce|nccl-tests|throughput)\b.{0,80}"
        r"(?:\b(?:9[0-9]|10\d|11[0-2])(?:\.\d+)? ?(?-i:Gb/s|Gbps|Gbit/s)"
        r"|\b1[1-4](?:\.\d+)? ?(?-i:GB/s)).{0,80}(?:instead|half|only|expected|should|rather|single|one (?:hca"
        r"|rail|nic))",
        LIKELY,
    ),
    line(
        r"(?:instead of|half|only|caps? at|capped|expected|single[- ](?:HCA|rail|NIC)|one (?:HCA|rail|NIC|twin)).{0,80}"
        r"(?:\b(?:9[0-9]|10\d|11[0-2])(?:\.\d+)? ?(?-i:Gb/s|Gbps|Gbit/s)|\b1[1-4](?:\.\d+)? ?(?-i:GB/s))",
        LIKELY,
        unless=r"tok/s|tokens/s|GiB|memory",
    ),
    line(r"Avg bus bandwidth\s+:\s+1[0-3]\.\d", LIKELY),
    line(r"(?:busbw|bus bandwidth|all_gather).{0,30}\b(?:9|10)(?:\.\d+)? ?(?-i:GB/s)", LIKELY),
    near(
        r"both (?:CX-?7 )?ports|two cables|both cages|four interfaces",
        r"halv|\bhalf|100 ?GbE|10(?:\.\d+)? ?(?-i:GB/s)|miswired",
        sure=LIKELY,
        within=2,
    ),
    line(r"(?:busbw|bus bandwidth|all_gather|all_reduce|nccl-tests)\b.{0,40}\b1[1-4](?:\.\d+)? ?(?-i:GB/s)", POSSIBLE),
    line(
        r"(?:busbw|bus bandwidth|all_gather|all_reduce|nccl-tests)\b.{0,40}\b(?:9\d|10\d)(?:\.\d+)? ?(?-i:Gb/s)",
        POSSIBLE,
    ),
    line(r"NET/IB : Using \[0\]roce\w+:1/RoCE (?:\[RO\])?;", HINT),
    near(
        r"single[- ](?:HCA|rail)|one (?:HCA|twin|rail)|only one of (?:the )?two|second (?:HCA|twin|PCIe)"
        r"|half (?:the|of the) (?:port|link|bandwidth)",
        r"Gb/s|GB/s|Gbps|busbw|NCCL_IB_HCA|MERGE_NICS|bandwidth",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"\b(?:9\d|10\d|11[0-2])(?:\.\d+)? ?(?-i:Gb(?:/s|ps|it/s)).{0,60}(?:one|single|alone|only|half"
        r"|instead of|of 200|200 ?G)",
        0.7,
    ),
    line(
        r"\b1[0-3](?:\.\d+)? ?(?-i:GB/s).{0,80}(?:one|single) (?:HCA|rail|port|function|device)|(?:one"
        r"|single) (?:HCA|rail|function|RoCE device)\b.{0,60}\b(?:1[0-3](?:\.\d+)? ?(?-i:GB/s)|half)",
        0.7,
    ),
)
FIX = (
    "rdma link   # on each node: both devices of the port are ACTIVE",
    "on each node: export NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0 NCCL_IB_MERGE_NICS=1   # both devices of the cabled port",
    "sources differ: both halves addressed, in two subnets (most), or the second without an address; never one subnet;"
    " MERGE_NICS=0 in rings and behind a switch",
    "sudo ip link set dev <twin> mtu 9000   # both halves, both nodes",
)
EXPLAINS = ()
