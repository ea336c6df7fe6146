"""A node's name does not resolve.

Detects: name look-ups of a rendezvous address or of a node that fail.
Why: --master-addr, --dist-init-addr or a hostfile has a name that this node or this container does not know. The same
  line about IPv6 alone is harmless: IPv4 is tried next.
Evidence: torch's `gai error`, ssh's or MPI's line with the name.
Remedy: addresses instead of names, or /etc/hosts on all nodes.
References: torch's socket.cpp; the manual of getaddrinfo
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line

CODE = "LLNK015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the name of a node does not resolve"
CAUSE = "node-name-not-resolved"
_PUBLIC = (
    r"huggingface|hf\.co|pypi|pythonhosted|ghcr|nvcr|docker\.io|github|nvidia\.com|ubuntu\.com|modelscope"
    r"|openaipublic|azure|googleapis|https://"
)
SIGNS = (
    line(r"IPv4 network addresses of \(?(?P<name>[\w.-]+).{0,20} cannot be retrieved \(gai error", LIKELY),
    line(r"IPv6 network addresses of .{0,60} cannot be retrieved \(gai error", HINT, unless=r"localhost|127\."),
    line(r"ssh: could not resolve hostname (?P<name>[\w.-]+)", LIKELY),
    line(
        r"(?:getaddrinfo|gethostbyname|gaierror).{0,80}(?:not known|failure in name resolution|failed)",
        POSSIBLE,
        unless=_PUBLIC,
    ),
    line(r"(?:name or service not known|temporary failure in name resolution)", 0.4, unless=_PUBLIC + r"|IPv6"),
)
FIX = (
    "on each node and in the container: getent hosts {head}",
    "use fabric addresses: --master-addr <address> (vLLM), --dist-init-addr <address>:<port> (SGLang)",
)
EXPLAINS = ("rendezvous-peer-missing", "engine-ready-timeout-too-short")
