"""Ray has no place for the engine's workers.

Detects: placement groups that are never created, and Ray's `No available node types`.
Why: Ray sees fewer GPUs than tensor times pipeline parallelism needs, a worker has not joined, or vLLM asks for
  `node:<its own address>` while Ray knows the node by another one (VLLM_HOST_IP differs from --node-ip-address).
Evidence: the list of specs; `ray status` shows which resources there are.
Remedy: all nodes in Ray, one address per node in both places, one bundle per node.
References: https://github.com/eugr/spark-vllm-docker/issues/227; https://github.com/vllm-project/vllm/issues/13388
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCLU001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Ray cannot place the workers"
CAUSE = "ray-placement-group-unsatisfiable"
SIGNS = (
    line(r"cannot provide a placement group", CERTAIN),
    line(r"ValueError: The number of required \w+s exceeds the total number of available", CERTAIN),
    line(r"number of required \w+s exceeds the total number of available \w+s", LIKELY),
    line(r"no available node types can fulfill resource request", LIKELY),
    line(r"waiting for creating a placement group of specs", LIKELY),
    line(r"specs ?= ?\[\{.{0,60}(?:'GPU'|'node:).{0,200}\}\]", LIKELY),
    line(r"pending placement groups?\b", LIKELY, unless=r"no pending|0 pending|0\+ pending"),
    line(r"current node has no GPU available|Ray does not allocate any GPUs", LIKELY),
    line(r"not enough resources to allocate \d+ placement groups|created only \d+ placement groups", LIKELY),
    line(
        r"PlacementGroupSchedulingError|placement group.{0,60}(?:infeasible|cannot be scheduled|timed? out"
        r"|never ready)",
        LIKELY,
    ),
    line(r"placement group.{0,100}(?:stuck|hang|waits? forever|unsatisf|unfulfill|pending)", LIKELY),
    line(
        r"(?:Actor|Task|actor|task) .{0,80}cannot be scheduled (?:right now|at this moment).{0,200}GPU"
        r"|Total resources required.{0,40}GPU|insufficient resources.{0,60}\bGPU",
        0.7,
    ),
)
FIX = (
    "docker exec <ray head> ray status   # all nodes and as many GPUs as tp x pp must be there",
    "on each node: ray start ... --node-ip-address=<its fabric address> --num-gpus 1, and VLLM_HOST_IP=<the "
    "same address>",
    'VLLM_DISTRIBUTED_EXECUTOR_CONFIG=\'{{"placement_group_options":{{"strategy":"SPREAD"}}}}\'   # one GPU a node',
)
EXPLAINS = ("engine-ready-timeout-too-short",)
