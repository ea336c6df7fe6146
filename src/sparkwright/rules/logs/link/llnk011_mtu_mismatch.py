"""The MTU is not the same on both halves of the port, or at both ends.

Detects: 17 to 18 GB/s of all_gather, messages that are too long for a path, an MTU of 1500 next to one of 9000.
Why: the second half was left at 1500, or one node was; RDMA then uses small packets there. The field disagrees about
  how much jumbo frames give where both ends agree (0.5 to 1.5 %): the mismatch is what costs.
Evidence: the figure, or `message too long, mtu=1500` of ping with 8972 bytes.
Remedy: 9000 on both halves of all nodes, the worker first.
References: field guide B2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LLNK011"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the MTU differs on the fabric"
CAUSE = "mtu-mismatch-fabric"
SIGNS = (
    line(r"Avg bus bandwidth\s+:\s+1[78]\.\d", LIKELY),
    line(r"(?:busbw|bus bandwidth|all_gather).{0,60}\b1[78](?:\.\d+)?(?:[-–]1[78](?:\.\d+)?)? ?(?-i:GB/s)", LIKELY),
    line(r"message too long,? mtu ?= ?\d+|Frag(?:mentation)? needed(?: and DF set)?", LIKELY),
    near(
        r"\bMTU\b.{0,30}\b1500\b|\b1500\b.{0,20}\bMTU\b",
        r"\b9000\b|jumbo|twin|enP2p|secondary|mismatch|rocep|fabric|QSFP|busbw|asymmetr",
        sure=LIKELY,
        within=2,
        unless=r"qdisc|link/ether|flags=",
    ),
    near(
        r"\bMTU \d|\bMTU\b.{0,6}9000|jumbo frames?",
        r"\b1500\b",
        sure=LIKELY,
        within=2,
        unless=r"qdisc|link/ether|flags=",
    ),
    line(r"\bMTU\b.{0,40}(?:mismatch|differs|not equal|inconsistent|asymmetric)", LIKELY),
    line(
        r"active_mtu:?\s+\d+.{0,60}(?:other|second|worker|but|vs)|\bmtu 1500\b.{0,60}\bmtu 9000"
        r"|\bmtu 9000\b.{0,60}\bmtu 1500|\bMTU\b.{0,40}\b(?:1500|9000)\b.{0,60}\b(?:9000"
        r"|1500)\b.{0,40}(?:other|differ|mismatch|worker|peer|node)",
        LIKELY,
    ),
)
FIX = (
    "on each node: ip -br link; sudo ip link set dev {iface} mtu 9000   # and its twin; the worker first",
    "ping -M do -s 8972 -c 3 {peer}   # must pass; then mtu: 9000 in netplan for both halves",
)
EXPLAINS = ()
