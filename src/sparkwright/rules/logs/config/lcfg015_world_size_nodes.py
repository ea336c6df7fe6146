"""The ranks do not come out even over the nodes.

Detects: A world size that the number of nodes does not divide.
Why: each node starts the same number of ranks.
Evidence: The engine's line.
Remedy: As many ranks as nodes on GB10, or fewer nodes.
References: vllm/engine/arg_utils.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LCFG015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the ranks do not come out even over the nodes"
CAUSE = "world-size-not-divisible-by-nodes"
SIGNS = (
    line(r"world_size ?=? ?\(?(?P<size>\d+)\)? must be divisible by nnodes ?=? ?\(?(?P<nodes>\d+)", CERTAIN),
    line(r"tp_size ?\*? ?(?:pp_size)?.{0,20}must be divisible by .{0,10}(?:number of nodes|nnodes)", CERTAIN),
)
FIX = ("tensor-parallel size times pipeline-parallel size must be a multiple of --nnodes ({nodes})",)
EXPLAINS = ()
