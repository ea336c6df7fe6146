"""Docker's bridge network hides the ranks from each other.

Detects: NCCL or Gloo that use a container's private address in a job of several nodes, and reports that name the
  network mode.
Why: addresses of Docker's bridge (172.17-31.x) are not routed between hosts, and NCCL opens ports at random: the
  rendezvous never completes.
Evidence: a bridge address in NCCL's interface line together with failing connections, or the words of the report.
Remedy: --network host on all nodes.
References: seed 002; gb10.md C1 (container block); https://docs.docker.com/engine/network/drivers/host/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LIMG010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "bridge network blocks NCCL between nodes"
CAUSE = "docker-bridge-network-blocks-nccl"
SIGNS = (
    near(
        r"\bbridge\b",
        r"blocks nccl|nccl (init|bootstrap|fail|hang|cannot|can.t|over)|gloo|rendezvous|multi-?node|cross-?node"
        r"|across (the )?nodes",
        r"host network|network_mode|--net(work)?[ =]host|unroutable|not routable|container (ip|address)"
        r"|172\.(1[7-9]|2\d|3[01])\.",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"(using \[0\]|OOB |NET/Socket.{0,20})eth0:172\.(1[7-9]|2\d|3[01])\.",
        r"timed out|connection refused|unhandled system error|no route to host|socketStartConnect",
        sure=POSSIBLE,
        within=200,
    ),
    line(
        r"(connect|retrying).{0,60}172\.(1[7-9]|2\d|3[01])\.\d+\.\d+.{0,60}(timed out|refused|no route)"
        r"|(timed out|refused|no route).{0,80}172\.(1[7-9]|2\d|3[01])\.\d+\.\d+<",
        POSSIBLE,
    ),
    line(
        r"(?:without|no|missing|not) .{0,6}--?net(?:work)?[= ]host\b|(?:bridge network"
        r"|default bridge)\b.{0,60}(?:NCCL|rank|peer|connect)",
        LIKELY,
    ),
)
FIX = (
    "docker run --network host ... on every node (compose: network_mode: host, no ports:)",
    "docker inspect -f '{{{{.HostConfig.NetworkMode}}}}' {container}   # must say host",
)
EXPLAINS = (
    "host-ip-autodetect-wrong-interface",
    "gloo-wrong-interface-loopback",
    "host-ip-autodetect-wrong-interface",
)
