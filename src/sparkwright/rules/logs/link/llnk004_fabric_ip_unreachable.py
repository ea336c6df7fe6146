"""The launcher uses a fabric address that it has no way to.

Detects: ssh or a transfer to a node's address that times out or has no route.
Why: fabric networks are only between the nodes (in a ring: between two of them); the machine that launches, or the head
  on another link, is not on them.
Evidence: ssh's line with the address.
Remedy: the management address for control, the fabric address only for the engines.
References: https://github.com/spark-arena/sparkrun/issues/176
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LLNK004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the launcher cannot reach the address that it uses for a node"
CAUSE = "fabric-ip-unreachable-from-launcher"
_GONE = r"(?:Connection timed out|Operation timed out|No route to host|Network is unreachable)"
SIGNS = (
    line(r"connect to host (?P<address>\S+) port \d+: " + _GONE, LIKELY),
    line(r"(?:ssh|rsync|scp)\b.{0,80}" + _GONE, LIKELY, unless=r"NCCL|ibv_|http"),
    near(
        r"(?:fabric|InfiniBand|IB[- ]side|IB transfer|QSFP|ring link)[- ](?:side |only )?(?:IPs?|address\w*"
        r"|subnet|network)\b",
        r"(?:no route|not reachable|unreachable|cannot reach|can't reach|timed? ?out|not connected|different subnet)",
        r"launcher|control (?:machine|node|host)|laptop|workstation|head node|\bssh |rsync| a ring",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"IB IPs?\b|IB addr|fabric|InfiniBand|internal (?:spark|link|connection|IP)|QSFP",
        r"no route|not reachable|unreachable|cannot reach|can't reach|times out|timed out",
        r"control machine|launcher|external (?:control|machine|system|host)|laptop|\bssh ",
        sure=LIKELY,
        within=3,
        unless=r"NCCL|ibv_",
    ),
    near(
        r"each link.{0,40}own subnet|separate subnets? per link",
        r"\bssh |unreachable|timed out|launcher",
        sure=LIKELY,
        within=4,
    ),
    line(
        r"(?:laptop|launcher|workstation|controller|operator|my machine|client machine)\b.{0,80}(?:fabric"
        r"|200G|192\.168\.(?:100|177|200)|169\.254|QSFP).{0,60}(?:unreachable|no route|cannot reach"
        r"|not reach|timed? out)|Unreachable from (?:the |my )?(?:laptop|launcher|workstation)",
        LIKELY,
    ),
)
FIX = (
    "ip route get <the address>   # on the machine that launches",
    "give the node's management address to the launcher; keep the fabric address for VLLM_HOST_IP and --master-addr",
)
EXPLAINS = ("ssh-not-reachable-or-keys-missing",)
