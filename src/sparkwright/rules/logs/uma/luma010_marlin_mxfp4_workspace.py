"""MXFP4 experts repacked for Marlin need memory that nobody counted.

Detects: an MXFP4 model on the Marlin MoE backend whose use reaches the whole unified memory.
Why: without native MXFP4 kernels for sm_121 vLLM repacks the experts for Marlin. The workspace lies outside the
  memory accounting: gpt-oss-120b reaches 118 GB whatever the share.
Evidence: MXFP4 and Marlin in one log, with use near the total.
Remedy: a build with MXFP4 kernels for sm_121, or no graphs and a much smaller share.
References: https://github.com/vllm-project/vllm/issues/43969; gb10.md D3
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import FULL
from sparkwright.rules.sign import LIKELY, POSSIBLE, near

CODE = "LUMA010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Marlin's repacked experts exceed the planned memory"
CAUSE = "marlin-mxfp4-workspace-oom-unified"
SIGNS = (
    near(
        r"MXFP4\b.{0,100}\bMARLIN|\bMARLIN.{0,100}MXFP4",
        r" OOM\b|out of memory|OutOfMemory|freez|exhaust|balloons|" + FULL,
        sure=LIKELY,
        within=3,
    ),
    near(
        r"'?MARLIN'? Mxfp4 MoE|MXFP4 MoE.{0,30}Marlin|Marlin.{0,40}mxfp4",
        r"out of memory.{0,90}total capacity of 1(?:19|2[0-2])\.",
        sure=LIKELY,
        within=400,
    ),
    near(
        r"'?MARLIN'? Mxfp4 MoE|MXFP4 MoE.{0,30}Marlin|Marlin.{0,40}mxfp4",
        r"NODE_OUT_OF_MEMORY|Out of memory: Killed process",
        sure=POSSIBLE,
        within=400,
    ),
    near(
        r"marlin.{0,40}(?:workspace|repack)",
        r"(?:outside|beyond|not counted|unaccounted|regardless of)\b| OOM\b|out of memory",
        r"mxfp4|gpt-oss",
        sure=LIKELY,
        within=4,
    ),
    near(
        r"prepare_moe_\w*fp4_layer_for_marlin|marlin_permute|gptq_marlin_(?:moe_)?repack"
        r"|marlin_utils_fp4\.py\", line",
        r"out of memory|OutOfMemoryError|\bKilled\b",
        sure=LIKELY,
        within=15,
    ),
)
FIX = (
    "use a build whose MXFP4 MoE backend is not Marlin on sm_121 (about 61 GB for gpt-oss-120b)",
    "--enforce-eager --gpu-memory-utilization 0.60   # leaves room for the repacking",
    "watch -n1 free -g   # on {node}, while weights load: stop before `available` is below 5",
)
EXPLAINS = ("uma-exhaustion-host-freeze",)
