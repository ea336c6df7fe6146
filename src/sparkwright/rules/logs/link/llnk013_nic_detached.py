"""The hot-plug handler took the network card away.

Detects: `Cable removal`, cards that leave PCIe, fewer active ports after a peer rebooted.
Why: when the far end goes down the handler detaches this node's card; the engine dies minutes later with an unhandled
  system error, and the card is not there any more.
Evidence: the kernel's line.
Remedy: switch the handler off on all nodes and start them together.
References: field guide A6, E16, E20, E47
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LLNK013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the network card was detached by the hot-plug handler"
CAUSE = "nic-detached-by-hotplug"
SIGNS = (
    near(
        r"cx7-pcie-hotplug.{0,40}Cable removal", r"Got async event|NCCL WARN|EngineDeadError", sure=CERTAIN, within=60
    ),
    line(r"cx7-pcie-hotplug.{0,40}Cable removal", LIKELY),
    line(r"mtk-hotplug-handler.{0,80}(?:remov|detach|unplug|plug-out)", LIKELY),
    near(
        r"PORT_ACTIVE|\bRoCE devices?|\bNICs? |ConnectX",
        r"vanish|disappear|gone after|detach|missing after|lost after",
        r"reboot|peer|hot-?plug|restart",
        sure=LIKELY,
        within=3,
    ),
    line(r"mlx5_core .{0,40}(?:device removed|PCI device removed|removal of|health recovery failed)", POSSIBLE),
)
FIX = (
    "on all nodes: sudo mv /etc/nvidia/cx7-hotplug-enabled /etc/nvidia/cx7-hotplug-enabled.off; reboot all together",
    "on each node: ibv_devinfo | grep -c PORT_ACTIVE   # 2 with one cable, 4 with two",
)
EXPLAINS = ("peer-rank-died", "rank-restart-race-tcpstore", "fabric-link-down", "nccl-socket-fallback-no-rdma")
