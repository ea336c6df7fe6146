"""A rank never came to the rendezvous.

Detects: stores that wait for clients, and clients that wait for a store, until a time-out.
Why: the other rank did not start, died before, was given another address or port, or cannot get there. The line does
  not say which; a cause that is found on the other node goes first.
Evidence: `1/2 clients joined`.
Remedy: look at the other rank first, then at addresses and firewalls.
References: field guide C0 (7), E39; https://github.com/eugr/spark-vllm-docker/issues/335
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LCLU011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a rank did not come to the rendezvous"
CAUSE = "rendezvous-peer-missing"
SIGNS = (
    line(r"\d/\d{1,9} (?:clients|workers) joined", LIKELY),
    line(r"timed out.{0,40}waiting for (?:clients|workers)\b", LIKELY),
    line(r"client socket has timed out after", POSSIBLE),
    line(r"\[c10d\].{0,40}TCP client failed to connect/validate to host", POSSIBLE),
    line(r"DistStoreError|RendezvousTimeoutError|RendezvousConnectionError", POSSIBLE),
    line(r"(?:The DP master node|DP coordinator).{0,60}(?:missing|dead|not reachable)", POSSIBLE),
)
FIX = (
    "on {peer}: docker ps -a; docker logs --tail 100 <container>   # does the other rank run, with which --master-addr",
    "on {peer}: nc -zv {head} <master port>   # while the head waits",
    "--dist-init-addr / --master-addr: the head's fabric address, the same on all ranks",
)
EXPLAINS = ("engine-ready-timeout-too-short",)
