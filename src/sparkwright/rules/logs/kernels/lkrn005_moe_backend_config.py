"""The chosen MoE backend does not fit the model.

Detects: a MoE backend that refuses activation, quantization scheme, routing or shape.
Why: every backend implements some activations (gated SwiGLU, clamped SwiGLU, ReLU2) and schemes. --moe-backend
  holds for all MoE layers, also those of another quantization and of the drafter.
Evidence: the ValueError names the backend and its reason.
Remedy: a backend that fits all layers; Marlin nearly always does.
References: vLLM fused_moe/oracle; vLLM issue 35065; FlashInfer issues 3486 and 3732; field guide E77
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LKRN005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the chosen MoE backend does not fit the model"
CAUSE = "nvfp4-moe-backend-unsupported-config"
SIGNS = (
    line(
        r"MoE backend '?\w+'? does not support the deployment configuration(?! since kernel does not "
        r"support (?:current|parallel|expert|$))"
    ),
    line(r"MoE backend '?\w+'? does not support MoEActivation"),
    line(r"moe_backend='?\w+'? is not supported for \w+ MoE"),
    line(r"moe_backend='?\w+'? does not apply the SwiGLU clamp"),
    line(r"No NvFp4 MoE backend supports the deployment", LIKELY),
    line(r"No (?:W4A8|WNA16|Int8|Unquantized|MXFP8) \w*\s?MoE backend supports", LIKELY),
    line(
        r"kernel does not support (?:no act_and_mul|MoEActivation|.{0,40} activation format"
        r"|quantization scheme|routing method|hash routing|\d+ hidden dim)",
        LIKELY,
    ),
    line(r"Invalid activation type", LIKELY),
    near(
        r"Invalid activation type",
        r"fused_moe",
        sure=CERTAIN,
        within=6,
    ),
    line(r"moe_runner_backend=\w+ is not supported for", LIKELY),
    line(r"MoE.{0,60}quant(?:ization)? scheme mismatch", POSSIBLE),
    line(
        r"FlashInfer (?:CuteDSL|TRTLLM|CUTLASS)(?: routed)? MOE (?:currently )?supports only"
        r"|FlashInfer (?:CuteDSL|TRTLLM|CUTLASS)(?: routed)? MOE currently only",
        LIKELY,
    ),
    line(r"Invalid quantization \W.{1,30}FlashInfer .{0,20}MOE", LIKELY),
    line(
        r"Unsupported activation .{0,24} for TRTLLM MoE|not supported by flashinfer cutlass moe|(?:are"
        r"|is) supported for (?:FP4|FP8|flashinfer trtllm bf16) MoE, got",
        LIKELY,
    ),
    line(r"CuteDSL (?:masked )?MoE (?:wrapper )?supports .{0,80}, got", LIKELY),
    line(r"quantization method selected the \W\w+\W runner|moe[-_]runner[-_]backend \w+ was requested, but", LIKELY),
)
FIX = (
    "--moe-backend marlin   # takes gated and ungated experts, FP8 and NVFP4",
    "or drop --moe-backend: the engine then takes the first backend that fits",
    'an unquantized drafter: "moe_backend": "triton" in --speculative-config (needs a vLLM that knows it)',
)
EXPLAINS = ()
