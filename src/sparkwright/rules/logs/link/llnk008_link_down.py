"""The fabric link is down.

Detects: carriers that are lost, links that go down, unplugged cables, NCCL's port errors.
Why: the cable is loose or of the wrong kind, the other node is off or boots, or a switch forces another speed. The
  empty cage of a Spark is always DOWN: that is no fault.
Evidence: the kernel's or NCCL's line with the device.
Remedy: seat the cable, see both ends up, then restart all ranks.
References: field guide B1, B3, E47
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line, near

CODE = "LLNK008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the fabric link is down"
CAUSE = "fabric-link-down"
SIGNS = (
    line(r"got async event : (?:port|link) error", CERTAIN),
    line(r"got async event : device fatal", LIKELY),
    line(r"Link detected: no\b", LIKELY),
    line(r"(?:mlx5_core|enp1s0f|enP2p1s0f).{0,60}: Link down", HINT),
    near(
        r"(?:mlx5_core|enp1s0f|enP2p1s0f).{0,60}: Link down",
        r"NCCL WARN|NETDEV WATCHDOG|Cable unplugged|Cable removal|EngineDeadError",
        sure=LIKELY,
        within=30,
    ),
    line(r"Speed: Unknown!", POSSIBLE),
    line(
        r"(?:roce\w|mlx5_\w|IB device).{0,40}port \d+.{0,20}(?:is not active|is down|PORT_DOWN|not in active state)",
        LIKELY,
    ),
    near(
        r"NO-CARRIER|PORT_DOWN|state DOWN|no carrier",
        r"fabric|ibstat|peer|other end|cluster|\bping\b|unreachable|expected",
        sure=LIKELY,
        within=4,
    ),
    near(
        r"(?:QSFP|fabric|CX-7|CX7 |ConnectX|RoCE|200G) ?(?:link|port|cable|interface)?s?.{0,40}(?:is |was |went "
        r"|are |goes )(?:down|not up|loose|unplugged|dead)",
        r" link|cable|NCCL |serving|carrier",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"cable (?:is |was )?(?:not seated|loose|unplugged|defective|faulty|bad)\b", LIKELY, unless=r"Port module event"
    ),
    line(
        r"(?:State|state):? ?\"?Down\"?\b.{0,10}(?:or |/ ?)\"?Polling|Physical state: Polling|physical_state POLLING",
        LIKELY,
    ),
    line(r"(?:enp1s0f\w+|enP2p1s0f\w+|roceP?\w+)\b.{0,20}link is (?:down|not up)", LIKELY),
    line(r"Port state is \W?(?:Down|Polling)", LIKELY),
    line(r"link flap(?:s|ped|ping)?\b", POSSIBLE, unless=r"GID"),
    line(r"no (?:active|usable) (?:fabric|RoCE|InfiniBand|QSFP|CX-?7|ConnectX) (?:link|port|interface)s?", LIKELY),
    line(r"en[pP]\w{4,14}np\d: <NO-CARRIER,", POSSIBLE),
    line(r"\b(?:roce\w+|mlx5_\d)\b.{0,20}(?:port \d )?==> en\w+ \(Down\)", POSSIBLE),
)
FIX = (
    "on each node: rdma link; ethtool {iface} | grep -E 'Speed|Link detected'",
    "sudo dmesg | grep -iE 'Cable|Link (up|down)' | tail   # seat the cable at both ends; switch: force 200G, "
    "no autoneg",
    "restart all ranks together when both ends are up",
)
EXPLAINS = (
    "peer-rank-died",
    "rank-restart-race-tcpstore",
)
