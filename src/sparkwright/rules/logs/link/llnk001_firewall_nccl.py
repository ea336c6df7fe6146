"""A firewall or a missing route stops the traffic between the nodes.

Detects: NCCL or torch connections between nodes that time out or find no route, and blocked packets in the kernel log.
Why: NCCL, Gloo, Ray and the message queues use random high ports; ufw and firewalld drop or reject them, or the
  address belongs to a network that this node has no route to. Ping may work all the same.
Evidence: the failed connect with its address.
Remedy: allow everything between the nodes on the fabric.
References: field guide B4 (4), E44; https://github.com/NVIDIA/nccl-tests/issues/15
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LLNK001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "connections between the nodes are blocked or have no route"
CAUSE = "firewall-or-routing-blocks-nccl"
_LOST = (
    r"(?:No route to host|Connection timed out|Network is unreachable|timed out|EHOSTUNREACH|ENETUNREACH"
    r"|Software caused connection abort)"
)
SIGNS = (
    line(
        r"(?:socketPollConnect|socketStartConnect|socketProgressOpt|socketConnect|NCCL WARN).{0,60}connect\w*\W.{0,80}"
        + _LOST,
        LIKELY,
        unless=r"ibv_",
    ),
    line(r"call to connect\b.{0,60}(?:Connection timed out|No route to host|Network is unreachable)", LIKELY),
    line(r"ncclSocketConnect.{0,100}" + _LOST, LIKELY),
    line(
        r"(?:TCPStore|c10d|SocketImpl|client socket).{0,160}(?:No route to host|EHOSTUNREACH|Network is unreachable)",
        LIKELY,
        unless=r"shut ?down|HeartbeatMonitor|recvValue",
    ),
    line(
        r"client socket has (?:timed out|failed to connect).{0,80}(?:connect to"
        r"|any network address of) [(\[](?!127|localhost)",
        POSSIBLE,
    ),
    line(r"exceeded (?:error )?retry count after|Open MPI failed to TCP connect to a peer", POSSIBLE),
    line(r"gloo.{0,160}(?:No route to host|Connection timed out)", LIKELY),
    line(r"\[UFW BLOCK\].{0,80}IN=", LIKELY),
    near(
        r"\bufw |firewall|iptables|nftables|security group",
        r"NCCL |nccl server|random ports|rendezvous|ib_write_bw|master[-_]port|TCPStore|Ray (?:port|node|head"
        r"|worker)|inter-?node|between (?:the )?nodes|ephemeral",
        r"block|\bdrop|reject|hang|timed out|stuck|denied|refus|allow|turned off|disable ",
        sure=LIKELY,
        within=3,
    ),
    near(r"防火墙", r"NCCL |节点|端口|通信|握手", sure=LIKELY, within=2, unless=r"API|客户端"),
    near(
        r"ping (?:is |works|ok|succeeds)",
        r"ib_write_bw|iperf3?|\bNCCL ",
        r"hangs?\b|timed? out|no route|refused|blocked",
        sure=POSSIBLE,
        within=3,
    ),
    line(r"client socket has failed to connect to .{0,80}errno: 11[03]\b", 0.65),
    line(
        r"(?:iptables|nftables|\bufw (?:still )?(?:blocks|drops|rejects|blocked|dropped)"
        r"|firewalld).{0,60}(?:NCCL|rendezvous|master|29500|25000|ephemeral|high ports|rank|worker|fabric)",
        LIKELY,
    ),
)
FIX = (
    "on each node: sudo ufw status verbose; sudo nft list ruleset | head -50",
    "on each node: sudo ufw allow in on {iface} from <the fabric's subnet>",
    "ip route get <the fabric address of {peer}>   # must go out of {iface}",
)
EXPLAINS = ("peer-rank-died", "rank-restart-race-tcpstore", "rendezvous-peer-missing", "engine-ready-timeout-too-short")
