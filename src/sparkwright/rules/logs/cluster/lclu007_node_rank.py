"""Two nodes have the same rank, or a node has another's role.

Detects: ranks that register twice, and reports of a wrong or inherited --node-rank or --headless.
Why: the command was copied, or baked into the image, with the rank of another node; both nodes then wait for the
  rank that nobody has, without a line.
Evidence: the command lines side by side.
Remedy: --node-rank 0 on the head, 1 and --headless on the worker, given explicitly.
References: field guide C1; https://github.com/tonyd2wild/DeepSeek-v4-Flash-DSpark-1M-NVFP4-KV-2x-DGX-Spark
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LCLU007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a node has the wrong rank"
CAUSE = "node-rank-misassigned"
SIGNS = (
    near(
        r"node[-_ ]rank|\bheadless\b|come up as rank|start(?:ed|s)? as rank",
        r"\bboth (?:nodes|ranks|machines|containers)|both sit|each (?:one )?waits|the head's|same rank"
        r"|wrong (?:rank|identity|node)|inherit|baked|duplicate|twice|as rank 1|copy carries|swapped|mixed up",
        sure=LIKELY,
        within=3,
    ),
    near(r"^(?!.*APIServer).*from node_rank 0\b", r"headless multiproc executor", sure=LIKELY, within=12),
    line(
        r"(?:missing|omit|without|forgot|did not pass|not passed).{0,20}--node-rank"
        r"|--node-rank.{0,40}(?:missing|omitted|not passed)",
        LIKELY,
    ),
    near(
        r"both (?:nodes|machines).{0,30}(?:as )?rank [01]\b", r"hang|waits |deadlock|never meet", sure=LIKELY, within=3
    ),
    line(
        r"(?:duplicate|same|conflicting) (?:node[-_]rank|rank (?:on|for|number))\b",
        LIKELY,
        unless=r"logprob|token|score",
    ),
    line(r"node_rank=\d+ must be less than nnodes", CERTAIN),
    line(r"node_rank.{0,40}(?:must be|should be|out of range|invalid|less than)", LIKELY),
    line(r"ranks has already checked in", POSSIBLE),
)
FIX = (
    "head: vllm serve {model} --nnodes 2 --node-rank 0 --master-addr <its fabric address> --master-port 29501 ...",
    "worker: the same with --node-rank 1 --headless",
    "docker inspect -f '{{{{.Config.Cmd}}}}' <container>   # on each node: which rank it was given",
)
EXPLAINS = ("rendezvous-peer-missing",)
