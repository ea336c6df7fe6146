"""More ranks were asked for than one node has GPUs.

Detects: A parallel size larger than the GPUs that the engine sees, without the other nodes.
Why: a GB10 has one GPU; a tensor-parallel size of 2 needs a second node, which must be named (--nnodes, Ray) at the
  start.
Evidence: The engine's line with both numbers.
Remedy: Start on as many nodes as ranks, or with one rank.
References: vllm/config/parallel.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LCFG010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "more ranks were asked for than one node has GPUs"
CAUSE = "parallel-size-exceeds-gpus"
SIGNS = (
    line(r"World size \((?P<size>\d+)\) is larger than the number of available GPUs \((?P<have>\d+)\)", CERTAIN),
    line(r"tensor parallel size \((?P<size>\d+)\) cannot be larger than the number of available GPUs", CERTAIN),
    line(r"local rank [1-9]\d* is out of bounds", LIKELY),
    line(r"CUDA error: invalid device ordinal|cudaErrorInvalidDevice", POSSIBLE),
    line(r"but (?:only )?(?P<have>\d+) GPUs? (?:is|are) available|requested (?P<size>\d+) GPUs, but only", POSSIBLE),
)
FIX = (
    (
        "name all nodes: vllm serve ... --nnodes {size} --node-rank <rank> --master-addr {head}; SGLang: "
        "--nnodes {size} --node-rank <rank> --dist-init-addr {head}:<port>"
    ),
    "or --tensor-parallel-size 1 on one node",
)
EXPLAINS = ()
