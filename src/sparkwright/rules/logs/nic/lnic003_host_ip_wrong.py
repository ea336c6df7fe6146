"""The engine or Ray announces the address of another network.

Detects: a worker with a link-local or Wi-Fi address, one address for several nodes, queues that wait for a peer.
Why: without VLLM_HOST_IP (HOST_IP, SGLANG_HOST_IP, --node-ip-address) engines take the address of the default route:
  the management LAN or Wi-Fi. NCCL may work over the fabric and the control plane still waits, or dies with the Wi-Fi.
Evidence: the address in the line of Ray or vLLM, or the report's words.
Remedy: give every node its own fabric address.
References: field guide B4 (5), C1, E35, E39; https://github.com/MiaAI-Lab/Qwen3.8-Flash-Next-Dual-DGX-Sparks/pull/9
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LNIC003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a node announces its address on the wrong network"
CAUSE = "host-ip-autodetect-wrong-interface"
_AUTO = r"get_local_ip|get_ip\(\)|get_node_ip|VLLM_HOST_IP|SGLANG_HOST_IP|\bHOST_IP\b|node-ip-address|default[- ]route"
_WRONG = (
    r"wi-fi|wifi|\bwlan0|wlP9s9|management|mgmt|link-local|169\.254\.|docker0|tailscale|wrong (?:interface|nic"
    r"|ip|address)"
    r"|ethernet (?:ip|address)"
)
_STUCK = (
    r"hang|stuck|wait_until_ready|never|cannot reach|can't reach|unreachable|park|crash|timed out|mismatch|syn[-_ ]sent"
)
SIGNS = (
    line(r"ip=169\.254\.\d", LIKELY),
    line(r"(?:distributed_init_method|init_method|dist_init_addr|dist-init-addr).{0,12}169\.254\.", LIKELY),
    line(r"every node should have a unique IP address", CERTAIN),
    line(r"failed to get the IP address, using 0\.0\.0\.0", LIKELY),
    line(r"can(?: ?not|'t) find the matched Raylet address", LIKELY),
    line(r"can ?not get local ip", POSSIBLE),
    # Rank 0 is itself the server that it calls.
    near(
        r"world_size=\d+ rank=0 .{0,80}distributed_init_method=tcp",
        r"client socket has timed out .{0,80}trying to connect",
        sure=LIKELY,
        within=12,
    ),
    near(_AUTO, _WRONG, _STUCK, sure=LIKELY, within=3),
    near(_AUTO, _WRONG, sure=POSSIBLE, within=1),
    near(
        r"CustomAllreduce is disabled|Init torch distributed ends",
        r"\bhangs?\b|freez|stuck|indefinitely|never (?:print|appear|come)|last line",
        sure=LIKELY,
        within=2,
    ),
    near(
        _AUTO + r"|multi-NIC|multiple (?:network )?(?:interfaces|NICs)|dual-homed",
        r"(?:wrong|incorrect|another|management|default-route|detected) (?:\w+ ){0,2}(?:IP|address|interface)\b",
        sure=LIKELY,
        within=2,
    ),
    near(r"wait_until_ready", r"shm_broadcast|both ranks|bind|message queue", sure=LIKELY, within=2),
    line(
        r"(?:los(?:ing|es?|t|s of)|drop\w*|disconnect\w*|without|when)(?: the)? (?:\bwifi|wi-fi|[Ww]lan0|[Ww]ireless)\b"
        r".{0,60}(?:serving|terminat|\bdie|kill|engine|takes? down|crash)",
        LIKELY,
    ),
    near(
        r"\bwifi|wi-fi|[Ww]lan0|\Wwireless",
        r"gloo|rendezvous|control.plane|\bZMQ[ /,]",
        r"bound|advertis|terminat",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"\bRay\b.{0,60}(?:bound to|binds|registered|advertis|picked|picks|chose|selected)",
        _WRONG,
        sure=LIKELY,
        within=2,
    ),
    line(
        r"hostfile IPs? (?:do not|don't|doesn't) match|IPs? in .{0,40}hostfile.{0,40}(?:match|wrong|stale|change)",
        LIKELY,
    ),
    near(r"syn[-_]sent", _WRONG, sure=LIKELY, within=3),
    line(
        r"(?:picks?|chooses?|chose|detects?|detected|uses?|advertises?|announces?|reports?) (?:the "
        r"|its )?(?:Wi-?Fi|wlan|wireless|docker|management|LAN|Tailscale|bridge|wrong) (?:address|IP"
        r"|interface|network)",
        LIKELY,
        unless=r"\bgloo\b|NCCL_SOCKET|Bootstrap",
    ),
    line(r"recorded in ray cluster.{0,12}172\.1[789]\.", 0.65),
    near(
        r"distributed_init_method=tcp://(?:172\.1[789]\.|169\.254)",
        r"nnodes\W{1,4}[2-9]|ray cluster|node[-_]rank\W{1,4}1\b",
        sure=0.65,
        within=60,
    ),
    line(
        r"VLLM_HOST_IP\b.{0,30}(?:must|needs? to|has to|should) be set|(?:advertis\w+|register\w*"
        r"|announc\w+|report\w*|publish\w*)\b.{0,30}(?:docker bridge|Wi-?Fi|172\.1[789]\.|management|LAN"
        r"|wrong) ?(?:IP|address|interface)?",
        LIKELY,
        unless=r"\bgloo\b|Bootstrap",
    ),
    line(
        r"(?:wrong|Wi-?Fi|LAN|docker) IP\b.{0,60}(?:ray status|ray start|node-ip"
        r"|instead of (?:the )?(?:fabric|RoCE|200G))",
        LIKELY,
    ),
    # vLLM asks Ray for the node of its own address; Ray knows that node by another one.
    line(r"No available node types can fulfill resource request .{0,80}'node:[\d.]+'", POSSIBLE),
)
FIX = (
    "on each node: export VLLM_HOST_IP=<its fabric address> SGLANG_HOST_IP=<its fabric address>",
    "ray start ... --node-ip-address=<this node's fabric address>   # on every node, when Ray is used",
    "ss -tn state syn-sent   # on a hanging worker: which address it tries",
)
EXPLAINS = ("engine-ready-timeout-too-short", "rendezvous-peer-missing")
