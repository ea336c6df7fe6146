"""The MoE kernel does not support expert parallelism.

Detects: a MoE kernel that meets experts of other ranks.
Why: with expert parallelism each rank holds part of the experts; kernels for SM 12.x (b12x, CuTe-DSL, some Marlin
  and CUTLASS paths) index experts globally and refuse, or run out of bounds.
Evidence: the refusal, or a shape assertion or CUTLASS failure right where expert parallelism is on.
Remedy: tensor parallelism for experts; on 2 to 4 nodes it is also the faster choice.
References: FlashInfer pull requests 3302 and 3070; vLLM issue 32826 and pull request 39622; seed 001
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LKRN008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the MoE kernel does not support expert parallelism"
CAUSE = "expert-parallel-unsupported-by-moe-kernel"
SIGNS = (
    line(r"(?:does not|doesn't|not) (?:yet |currently )?support expert[- ]parallel"),
    line(r"expert[- ]parallel\w* (?:is |are )?not (?:yet )?supported"),
    line(r"\bEP is not (?:yet )?supported|not support EP\b", LIKELY),
    line(r"kernel does not support parallel config"),
    line(r"only supported (?:with|when) ep_size ?== ?1"),
    line(r"assert layer\.moe_ep_size == 1", LIKELY),
    line(r"assert weight\.shape == \(e, size_n", LIKELY),
    line(r"local_expert_offset ?!= ?0|num_local_experts ?!= ?num_experts", LIKELY),
    near(
        r"^(?!.*(?:non-default args|INFO|enable_expert_parallel=False)).*(?:enable[-_]expert[-_]parallel"
        r"|--ep-size|with expert parallel|expert parallelism)",
        r"Failed to (?:run|initialize) cutlass|Error Internal|illegal memory|IllegalAddress"
        r"|shape mismatch|crash(?:es|ed)|gemm fail",
        sure=LIKELY,
        within=8,
    ),
    line(r"Worker_\w*EP\d+ .{0,240}(?:cutlass FP4 gemm|grouped gemm|cutlass FP8 gemm)", LIKELY),
    line(
        r"expert (?:\w+ )?parallel\w*(?: ?/ ?expert_map)? (?:is |are )?(?:currently "
        r"|yet )?not (?:currently |yet )?(?:supported|available|implemented)",
        CERTAIN,
    ),
    line(r"expert_map\b.{0,40}not (?:currently |yet )?(?:supported|implemented)", CERTAIN),
)
FIX = (
    "drop --enable-expert-parallel (vLLM) or --ep-size (SGLang): tensor parallel experts work",
    "or --moe-backend marlin / --moe-runner-backend triton, which take an expert map",
)
EXPLAINS = ()
