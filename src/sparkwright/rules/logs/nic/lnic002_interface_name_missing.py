"""The interface that Gloo is told to use does not exist on this node.

Detects: Gloo's `Unable to find address for: NAME`, or interface names of another machine in the environment.
Why: one set of interface names went to all nodes (by the image, a launcher or Ray), and on this node the cable is in
  the other port or the names differ: `eth0`, `eno1` do not exist on a Spark.
Evidence: the line of Gloo with the name it looked for.
Remedy: give each node the name that `ip -br -4 addr` shows there.
References: field guide B1, E36; https://github.com/spark-arena/sparkrun/issues/275
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, line, near

CODE = "LNIC002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the interface named for Gloo does not exist on this node"
CAUSE = "gloo-interface-name-missing-on-node"
SIGNS = (
    line(r"unable to find (?:address|interface) for:? ?[`\[<]?(?P<wrong>[^\s\]`>]+)", CERTAIN),
    line(r"(?:invalid|unknown|unsupported|no such).{0,30}(?:interface|device).{0,60}GLOO_SOCKET_IFNAME", LIKELY),
    line(
        r"(?:GLOO|TP)_SOCKET_IFNAME.{0,80}(?:does not exist|not exist|no such device|not found|missing|absent"
        r"|another (?:machine|host|site)|wrong (?:name|interface))",
        LIKELY,
    ),
    near(
        r"cluster[_ ]interface",
        r"initialization fail|root cause|does not exist|not found|no such device|looking for",
        sure=LIKELY,
        within=2,
    ),
    near(r"\bDevice \"[\w.-]+\" does not exist", r"IFNAME|gloo|cluster|fabric", sure=LIKELY, within=6),
    line(
        r"(?:falls? back|default|hard-?coded|baked).{0,60}(?:\beth0\b|\beno1\b).{0,80}(?:does not exist"
        r"|not exist|no such)",
        LIKELY,
    ),
    near(
        r"GLOO_SOCKET_IFNAME|\bgloo\b",
        r"(?:without|hardcode|hard-code|baked|lacks|assumes|placeholder).{0,60}\b(?:enp\d|enP\d|eth\d|eno\d)",
        sure=LIKELY,
        within=2,
    ),
    near(r"^\W{0,4}(?:-e |export |Env )?TP_SOCKET_IFNAME=enP7s7", r"GLOO_SOCKET_IFNAME=enP7s7", sure=HINT, within=2),
    line(r"gloo/transport/tcp/device\.cc.{0,60}(?:rv != -1|ifa != nullptr)", LIKELY, unless=r"address for: lo$"),
)
FIX = (
    "on each node: ip -br -4 addr   # the name that has the fabric address there",
    "on each node, with its own name: export GLOO_SOCKET_IFNAME={iface} TP_SOCKET_IFNAME={iface} "
    "NCCL_SOCKET_IFNAME={iface}",
    "docker inspect -f '{{{{.Config.Env}}}}' <image>   # names that the image brings along",
)
EXPLAINS = (
    "nccl-socket-ifname-wrong",
    "engine-ready-timeout-too-short",
    "peer-rank-died",
    "rank-restart-race-tcpstore",
)
