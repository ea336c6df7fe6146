"""The network card runs with a power cap since its cable was plugged in while the node ran.

Detects: about 13 Gb/s of RDMA or 2.8 GB/s of NCCL on a link that is up at 200G.
Why: the card was attached by hot-plug; the slot's power was never advertised to it. Ping and link speed look right. The
  line about 27 W is also printed at full speed and proves nothing.
Evidence: the figure; the kernel's line alone is a hint.
Remedy: boot both nodes with the cable in; some need a minute without mains power.
References: field guide A6, E17; https://github.com/NVIDIA/dgx-spark-playbooks/pull/108
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LLNK005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the network card was attached while running and is held at 13 Gb/s"
CAUSE = "nic-hotplug-power-cap"
SIGNS = (
    line(r"PCIe slot power capability was not advertised", POSSIBLE),
    near(r"power capability was not advertised|power-capped", r"busbw|GB/s|Gb/s|Gbps", sure=LIKELY, within=6),
    *(
        sign
        for unit in ("Gb/s", "Gbps", "Gbit", "Gb/sec")
        for sign in (
            near(
                r"ib_write_bw|iperf|raw RDMA|raw link|busbw",
                rf"\b1[2-4](?:\.\d+)? ?(?-i:{unit})",
                sure=LIKELY,
                within=3,
            ),
            line(rf"(?:capp?ed|caps|limited|stuck|only|held|degraded).{{0,30}}\b1[34](?:\.\d+)? ?(?-i:{unit})", LIKELY),
        )
    ),
    near(
        r"hot-?plug(?:ged|ging)?|hot-?attach(?:ed)?|cx7-hotplug",
        r"slow|power[- ]cap|\bcapped|throttl|degraded|ib_write_bw|busbw|bandwidth (?:drops|is|of|only)",
        r"cable|\bNICs? |ConnectX|CX-?7 |\bcards? |mlx5",
        sure=LIKELY,
        within=4,
    ),
    near(
        r"busbw|bus bandwidth|all_gather|all_reduce",
        r"(?:~|≈|about |only |at )?\b2\.[78]\d? ?(?-i:GB/s)",
        sure=LIKELY,
        within=2,
    ),
    line(r"Avg bus bandwidth\s+:\s+2\.[6-9]", LIKELY),
    line(
        r"hotplug\b.{0,80}(?:bandwidth|Gb/s|GB/s|power|slot|slow)|(?:bandwidth|slot power"
        r"|Gb/s)\b.{0,60}hotplug",
        0.7,
        unless=r"pciehp: Slot|memory hotplug|cpu",
    ),
)
FIX = (
    "on all nodes: sudo mv /etc/nvidia/cx7-hotplug-enabled /etc/nvidia/cx7-hotplug-enabled.off   # costs about 18 W",
    "shut down all nodes, plug the cable in, start them together; if it stays: mains power off for a minute",
    "ib_write_bw -d rocep1s0f0 -q 4 --report_gbits {peer}   # the active device of `rdma link`; 92 Gb/s and "
    "more is healthy",
)
EXPLAINS = ("nccl-ib-hca-not-pinned",)
