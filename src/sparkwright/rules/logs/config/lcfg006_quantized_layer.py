"""The model's code does not expect this layer to be quantized.

Detects: A model class that asks a quantized linear layer for a plain weight.
Why: quantized layers hold packed weights under other names; the class was written for a checkpoint in which this
  layer (tower, router, norm) stays unquantized.
Evidence: The AttributeError for `weight` of a linear layer while the model is built.
Remedy: A checkpoint that leaves the layer alone, or the unquantized one.
References: https://github.com/sgl-project/sglang (python/sglang/srt/models)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCFG006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the model's code does not expect this layer to be quantized"
CAUSE = "quantized-layer-unsupported-by-model-code"
SIGNS = (
    line(
        r"'\w*(?:Linear|ParallelLinear|LinearBase|FusedMoE|ParallelEmbedding"
        r"|LMHead)\w*' object has no attribute '(?P<name>weight|weight_loader|bias|weight_scale\w*)'",
        CERTAIN,
    ),
    line(
        r"'(?:Parameter|Tensor|\w*Linear\w*"
        r"|\w*Embedding\w*)' object has no attribute '(?P<name>weight_loader|qweight|weight_packed"
        r"|input_scale|load_\w+_weight|tp_dim|output_dim|packed_dim)'",
        LIKELY,
    ),
    line(
        r"(?:audio|vision|image) (?:tower|encoder).{0,120}(?:cannot be quantized|quantized "
        r".{0,40}(?:not supported|unsupported)|assumes unquantized)",
        LIKELY,
    ),
    line(
        r"(?:unquantized|not quantized|plain) `?\.?weight`?.{0,80}(?:packed|quantized)|packed "
        r".{0,60}does not (?:create|have) .{0,20}weight",
        LIKELY,
    ),
)
FIX = (
    (
        "take the unquantized checkpoint, or one whose `ignore` list (quantization_config in config.json) "
        "names this layer"
    ),
    (
        "or an engine release that loads this model quantized; `sparkwright recipes show {recipe}` says "
        "which ones are known to work"
    ),
)
EXPLAINS = ()
