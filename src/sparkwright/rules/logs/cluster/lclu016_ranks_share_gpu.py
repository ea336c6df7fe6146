"""Two ranks run on the same GPU.

Detects: NCCL's `Duplicate GPU detected`.
Why: on a Spark there is one GPU a node; two ranks on one node (a wrong --nnodes, --node-rank, hostfile or Ray bundle)
  share it, which NCCL refuses.
Evidence: NCCL's line with both ranks.
Remedy: one rank a node.
References: NCCL's init.cc; field guide C1, C4
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCLU016"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "two ranks run on the same GPU"
CAUSE = "ranks-share-one-gpu"
SIGNS = (
    line(r"duplicate GPU detected", CERTAIN),
    line(r"(?:two|multiple|several) ranks (?:use|share|on) (?:the same|one) (?:GPU|device)", LIKELY),
)
FIX = (
    "one rank a node: --nnodes 2 --tensor-parallel-size 2 (vLLM, SGLang); OMPI_MCA_rmaps_ppr_n_pernode=1 (MPI)",
    "Ray: placement strategy SPREAD, --num-gpus 1 on every node",
)
EXPLAINS = (
    "peer-rank-died",
    "rank-restart-race-tcpstore",
)
