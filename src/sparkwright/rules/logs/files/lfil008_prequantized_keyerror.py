"""The loader meets scale tensors that it did not make room for.

Detects: KeyError and `no module or parameter named` for names of quantized tensors while weights load.
Why: the checkpoint quantizes layers that the engine's model code builds unquantized (its ignore list is not read,
  modules are named otherwise, fused experts differ), so names like weight_scale have no parameter.
Evidence: the name in the error ends in a scale, a packed weight or zero points.
Remedy: another engine version or another checkpoint of the model; --hf-overrides where a layer list is wrong.
References: https://github.com/vllm-project/llm-compressor/issues/959;
  https://github.com/vllm-project/vllm/issues/53950; https://github.com/NVIDIA/TensorRT-LLM/issues/16867
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LFIL008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "loader does not know tensors of the quantized checkpoint"
CAUSE = "prequantized-checkpoint-loader-keyerror"
SIGNS = (
    line(
        r"KeyError: ['\"][\w.]*(scales?|scale_inv|scale_2|weight_packed|packed|qweight|qzeros|g_idx|absmax"
        r"|quant_state|zero_point|weight_shape|_blocks|input_amax)['\"]",
        LIKELY,
    ),
    line(
        r"no module or parameter named\s*['\"][\w.]*(scales?|scale_inv|scale_2|weight_packed|qweight|qzeros|g_idx"
        r"|absmax|zero_point|weight_shape)",
        LIKELY,
    ),
    line(r"KeyError: ['\"][\w.]*experts[\w.]*\.w(13|2|1|3)_\w+(\.\d+)?['\"]", LIKELY),
    line(
        r"KeyError: ['\"](model\.|language_model\.|transformer\.|layers\.|backbone\.)[\w.]*['\"]",
        POSSIBLE,
        unless=r"mtp|draft|eagle|visual|vision",
    ),
    near(
        r"load_weights|weight_loader|load_model|loading weights|weight mapper",
        r"KeyError: ['\"](model\.|language_model|layers\.|lm_head|backbone|w\d+_|[qkvo]['\"])",
        sure=POSSIBLE,
        within=12,
        unless=r"mtp|draft|eagle|visual|vision",
    ),
    near(
        r"pre-?quanti[sz]ed|quanti[sz]ed checkpoint|(NVFP4|MXFP4|FP8|INT4|AWQ|GPTQ) checkpoint|bitsandbytes",
        r"KeyError",
        sure=LIKELY,
        within=3,
    ),
)
FIX = (
    "read quantization_config in the checkpoint's config.json: does its ignore list name the module of the error?",
    (
        "try the engine version of the model card, or the checkpoint of another producer; sparkwright recipes show "
        "{recipe} lists what works"
    ),
)
EXPLAINS = ()
