"""llama.cpp is told to use its own node over RPC.

Detects: a crash right after a command with --rpc, and reports of an own address in the list.
Why: the local GPU is used directly; listed a second time through the local rpc-server it is allocated twice and the
  program crashes or runs out of memory.
Evidence: --rpc with several servers, then `Segmentation fault` before the model loads.
Remedy: list only the other nodes.
References: https://github.com/geerlingguy/beowulf-ai-cluster/issues/15
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LCLU006"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "the list of --rpc has the own node in it"
CAUSE = "llamacpp-rpc-self-listed"
SIGNS = (
    near(r"--rpc \S+:\d+,\S+:\d+", r"segmentation fault|core dumped|SIGSEGV", sure=LIKELY, within=14),
    near(r"--rpc \S+:\d+", r"segmentation fault|core dumped|SIGSEGV", sure=POSSIBLE, within=14),
    near(
        r"--rpc\b|rpc-server",
        r"own (?:node|address|ip|rpc)|itself|its own|self-listed|also (?:the )?local (?:gpu|node|device)",
        sure=LIKELY,
        within=2,
    ),
    line(r"--rpc\b.{0,60}(?:127\.0\.0\.1|localhost):\d+,\S+.{0,60}(?:local|itself|own|twice|slower)", LIKELY),
)
FIX = ("llama-server --rpc {peer}:50052 ...   # only the other nodes; the local GPU is used without it",)
EXPLAINS = ()
