"""A firewall or a missing route stops clients on their way to the API port.

Detects: clients that find no route or time out on the API's port.
Why: the host answers ping and its firewall rejects the port, or the port is not published.
Evidence: the client's errno 113 or time-out.
Remedy: open the port for the clients' network.
References: https://github.com/sgl-project/sglang/issues/1121
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LLNK009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "clients cannot reach the API port"
CAUSE = "firewall-blocks-api-port"
SIGNS = (
    line(
        r"(?:httpcore|httpx|requests|urllib3|aiohttp|APIConnectionError)\b.{0,160}(?:No route to host|Errno 113)",
        LIKELY,
    ),
    line(
        r"failed to establish a new connection: \[Errno 1(?:13|10)\]",
        LIKELY,
        unless=r"huggingface|hf\.co|pypi|ghcr|nvcr|docker\.io",
    ),
    line(r"ConnectError: \[Errno 113\]", LIKELY),
    line(r"curl: \(7\) .{0,120}(?:No route to host|Host is unreachable)", LIKELY),
    line(
        r"curl: \(28\) (?:Failed to connect|Connection timed? ?out).{0,120}",
        POSSIBLE,
        unless=r"huggingface|hf\.co|pypi|github",
    ),
    line(
        r"(?:ConnectTimeout|ConnectTimeoutError)\b.{0,200}(?:port=(?:8\d{3}|30000|11434)|:(?:8\d{3}|30000|11434)/)",
        POSSIBLE,
    ),
    near(
        r"\bufw |firewall|iptables",
        r"(?:API|HTTP|server|client)(?:'s)? port|port (?:8000|8080|30000|11434)|allow (?:8000|8080|30000|11434)"
        r"|\b(?:8000|8080|8888|30000|11434)/tcp",
        sure=LIKELY,
        within=3,
        unless=r"NCCL|Ray\b",
    ),
    near(
        r"\bufw (?:status|is|allow|active|deny)|ufw enabled|firewalld|iptables|nftables",
        r":(?:8000|8080|30000|8001|11434)\b|\bAPI port|port (?:8000|8080|30000)",
        r"times out|timed out|blocked|refused|unreachable|not allowed",
        sure=0.7,
        within=2,
    ),
    near(
        r"\bufw (?:had|has|have|was|status|deny|default)|default-deny ufw|firewall|iptables|nftables",
        r"default[- ]deny|no (?:matching )?(?:allow )?rule|allow rule|bridge (?:subnet|traffic)|until .{0,40}rule",
        r"unreachable|blocked|refused|times? out|timed out|traffic|not reach",
        sure=LIKELY,
        within=2,
        unless=r"NCCL|\bRay\b|RoCE|rdma",
    ),
)
FIX = (
    "sudo ufw allow from <the clients' network> to any port {port} proto tcp   # on the head",
    "ss -ltnp 'sport = :{port}'; curl http://{node}:{port}/health   # on the head first, then from the client",
)
EXPLAINS = ()
