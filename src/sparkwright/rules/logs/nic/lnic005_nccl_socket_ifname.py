"""NCCL's socket interface is missing or the wrong one.

Detects: NCCL that finds no interface, connects to an address of no family, or bootstraps over loopback or a bridge.
Why: NCCL_SOCKET_IFNAME names an interface that this node has not, or a filter that matches none, or NCCL took the
  bridge of Docker. The bootstrap then carries an address that no peer can reach.
Evidence: NCCL's own lines.
Remedy: name the interface that has the fabric address, per node.
References: field guide B5; https://github.com/NVIDIA/nccl/issues/1837; https://github.com/NVIDIA/nccl/issues/286
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line, near

CODE = "LNIC005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "NCCL_SOCKET_IFNAME names no usable interface"
CAUSE = "nccl-socket-ifname-wrong"
_NOT_IP = r"connecting to address.{0,40}with family \d+ is neither AF_INET"
SIGNS = (
    line(r"no (?:socket|NCCL_SOCKET_IFNAME) interface found", CERTAIN),
    line(r"no interface found in the same subnet as", LIKELY),
    line(r"no usable listening interface found", LIKELY),
    near(r"NCCL_SOCKET_IFNAME set (?:by environment )?to (?P<wrong>\S+)", _NOT_IP, sure=LIKELY, within=60),
    line(_NOT_IP, POSSIBLE),
    line(r"socket operation on non-socket", LIKELY),
    line(
        r"Bootstrap ?: Using (?:\[0\])?(?:docker\w*|br-\w+|veth\w+|virbr\d|tailscale\d|wg\d|cni\d|flannel\S*|wl\w+):",
        LIKELY,
    ),
    line(r"Bootstrap ?: Using (?:\[0\])?lo:127", HINT),
    line(
        r"(?:NCCL WARN|socketStartConnect|socketPollConnect).{0,80}connect.{0,20}(?:127\.0\.0\.1|172\.1[7-9]\."
        r"|fe80:).{0,60}(?:fail|refused|timed out|no route)",
        LIKELY,
    ),
    line(
        r"NCCL_SOCKET_IFNAME.{0,100}(?:does not exist|not exist|no such|not found|wrong|mismatch|no(?:t|n)[- ]?existent"
        r"|matches? no|invalid|typo)",
        LIKELY,
    ),
    near(r"NCCL_SOCKET_IFNAME", r"网卡.{0,12}(?:错|不对|不存在)|不存在.{0,8}网卡", sure=LIKELY, within=2),
    line(r"(?:wrong|incorrect|bad|non-?existent) (?:value (?:of|in|for) )?NCCL_SOCKET_IFNAME", LIKELY),
    near(
        r"NCCL_SOCKET_IFNAME",
        r"connection reset by peer|unhandled system error",
        sure=POSSIBLE,
        within=3,
        unless=r"NCCL INFO",
    ),
    line(r"(?:find|no|match).{0,30}interface.{0,30}(?:matching|match|for|in) NCCL_SOCKET_IFNAME", LIKELY),
    line(
        r"(?:NCCL|bootstrap)\b.{0,30}(?:picks?|picked|chooses?|chose|uses|selects?|binds to|goes over"
        r"|grabs) (?:the )?(?:docker0|docker bridge|wrong interface|wrong NIC|loopback|Wi-Fi|WiFi|virbr0"
        r"|tailscale0|management)",
        LIKELY,
    ),
)
FIX = (
    "on each node: ip -br -4 addr   # the interface that has the fabric address",
    "on each node: export NCCL_SOCKET_IFNAME={iface}   # the plain name; `=name` (exact) is not read by every build",
    "NCCL_DEBUG=INFO   # the line `Bootstrap : Using ...` says what was taken",
)
EXPLAINS = ("engine-ready-timeout-too-short", "peer-rank-died", "rank-restart-race-tcpstore")
