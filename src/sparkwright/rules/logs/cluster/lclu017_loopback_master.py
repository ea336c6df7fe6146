"""The other nodes are told to meet the head on their own loopback.

Detects: a head address of 127.0.0.1 or localhost in the command or the log of a rank of several nodes.
Why: the head was entered as 127.0.0.1 (handy for ssh on the head itself) and that address went to all ranks; a worker
  then looks for the head on itself, and the head waits for clients until its time-out.
Evidence: vLLM's `with head node address 127...`, the flags of the worker.
Remedy: the head's fabric address everywhere.
References: https://github.com/spark-arena/sparkrun/issues/249
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LCLU017"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the head's address is loopback on other nodes"
CAUSE = "master-address-is-loopback"
SIGNS = (
    # Two ranks on one machine meet there, too: alone the address proves nothing.
    near(
        r"with head node address (?:127\.|localhost)",
        r"Connection refused|timed out|TimeoutError|failed to connect|clients joined",
        sure=LIKELY,
        within=60,
    ),
    line(r"--nnodes[ =][2-9].{0,400}--(?:master-addr|dist-init-addr)[ =](?:127\.|localhost)", LIKELY),
    line(r"--(?:master-addr|dist-init-addr)[ =](?:127\.|localhost).{0,400}--nnodes[ =][2-9]", LIKELY),
    near(
        r"loopback|127\.0\.0\.1",
        r"master[-_]addr|dist-init-addr|head host|head_ip|head address",
        r"emitted|rendezvous|other nodes|every node|to workers|on workers",
        sure=LIKELY,
        within=1,
        unless=r"INFO",
    ),
)
FIX = (
    "vllm serve ... --master-addr <the fabric address of {head}>   # SGLang: --dist-init-addr <address>:<port>; "
    "on all ranks",
)
EXPLAINS = ("rendezvous-peer-missing", "gloo-wrong-interface-loopback", "engine-ready-timeout-too-short")
