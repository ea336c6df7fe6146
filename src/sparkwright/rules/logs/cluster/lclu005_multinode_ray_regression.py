"""This version of vLLM counts the GPUs of one node for a group that spans several.

Detects: `local_world_size (N) must be less than or equal to the number of visible devices (M)`.
Why: vLLM 0.11.1 compared the whole tensor parallel size with one node's devices when Ray spans nodes. Without Ray on
  several nodes the same line means that the size is too large for this node.
Evidence: the assertion.
Remedy: a newer vLLM, or the one before.
References: https://github.com/vllm-project/vllm/pull/28873
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LCLU005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "this vLLM takes the GPUs of all nodes for those of one"
CAUSE = "engine-regression-multinode-ray"
SIGNS = (
    line(r"local_world_size \(\d+\) must be (?:less than or equal to|<=) the number of visible devices", LIKELY),
    line(r"local_world_size\W{1,3}\d+.{0,60}visible devices", LIKELY),
    line(r"regression.{0,80}(?:multi-?node|several nodes).{0,40}Ray|Ray.{0,60}multi-?node.{0,40}regression", LIKELY),
    line(
        r"\b0\.\d+\.\d+ (?:starts|works|is fine|runs|worked)\b.{0,60}\b(?:Ray|multi-?node"
        r"|two nodes)\b.{0,60}\b0\.\d+\.\d+ (?:hangs|fails|does not|crashes|stalls)",
        LIKELY,
    ),
)
FIX = ("pip install -U vllm   # 0.11.2 or newer; or an image of such a version, on every node",)
EXPLAINS = ()
