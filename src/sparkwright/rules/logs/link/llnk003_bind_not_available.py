"""A process wants to listen on an address that this node does not have.

Detects: `Cannot assign requested address` when something binds.
Why: VLLM_HOST_IP, --host or an address in the image is another node's, or the interface lost its address.
Evidence: the error with the address.
Remedy: this node's own address.
References: https://github.com/tonyd2wild/DeepSeek-v4-Flash-DSpark-1M-NVFP4-KV-2x-DGX-Spark
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LLNK003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the address to listen on is not this node's"
CAUSE = "bind-address-not-available"
SIGNS = (
    line(r"ZMQError: Cannot assign requested address(?:.{0,20}(?:tcp|udp)://(?P<wrong>[\d.a-f:]+):)?", CERTAIN),
    line(r"bind.{0,100}cannot assign requested address", CERTAIN),
    line(r"\bEADDRNOTAVAIL\b|code: -99\b", CERTAIN),
    line(
        r"cannot assign requested address",
        LIKELY,
        unless=r"connect(?:ing)? to|Cannot connect|ClientConnector|Max retries|localhost",
    ),
    near(
        r"VLLM_HOST_IP|--host\b|host[_-]ip|bind address|listen address",
        r"does not own|not (?:own|assigned|local|available) (?:to|on) (?:this|the|that) (?:node|host|machine)"
        r"|(?:another|other|wrong) (?:node|host|machine)'s (?:ip|address)",
        sure=LIKELY,
        within=2,
    ),
    line(r"ZMQError: (?:No such device|Cannot assign requested).{0,40}addr=", LIKELY),
)
FIX = (
    "ip -br -4 addr   # the addresses of this node",
    "docker run ... -e VLLM_HOST_IP=<this node's fabric address> ...   # on every node its own",
)
EXPLAINS = ("engine-ready-timeout-too-short", "peer-rank-died", "rank-restart-race-tcpstore")
