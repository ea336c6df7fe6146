"""llama.cpp cannot reach an rpc-server.

Detects: failed connections to a server of --rpc.
Why: the rpc-server does not run, listens on 127.0.0.1 (its default), or the port is blocked.
Evidence: llama.cpp's line with the address.
Remedy: start rpc-server with -H and the node's fabric address.
References: field guide C5
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LCLU013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "an rpc-server of llama.cpp cannot be reached"
CAUSE = "llamacpp-rpc-server-unreachable"
SIGNS = (
    line(r"failed to connect to (?:RPC server )?(?P<address>[\w.-]+:50\d{3})\b", LIKELY),
    line(r"failed to (?:find|initialize|add|register) RPC (?:backend|device|server)", LIKELY),
    line(r"RPC.{0,40}(?:connection refused|no route to host)", POSSIBLE, unless=r"gRPC|grpc|RpcError|version"),
)
FIX = (
    "on {peer}: rpc-server -H <its fabric address> -p 50052 -c   # it has no authentication: fabric only",
    "nc -zv {peer} 50052",
)
EXPLAINS = ()
