"""The split weights do not fill whole quantization blocks.

Detects: A layer whose part on one rank is no multiple of the block or group size of the quantization.
Why: Block-wise FP8 has one scale for 128 columns, GPTQ and AWQ one for a group, Marlin tiles of 64 or 128; tensor
  parallelism cuts an intermediate size into parts that no longer fit.
Evidence: The engine's line with the part's size and the block.
Remedy: A smaller tensor-parallel size, expert parallelism, or a checkpoint with another block size.
References: vllm/model_executor/layers/quantization/utils/fp8_utils.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCFG001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the split weights do not fill whole quantization blocks"
CAUSE = "quant-block-not-divisible-by-tp"
SIGNS = (
    line(
        r"not divisible by (?:weight quantization |FP8 )?(?:block_[nk]|group_size|min_thread_[nk]"
        r"|weight_block_size)\b ?=? ?(?P<block>\d+)?",
        CERTAIN,
    ),
    line(
        r"(?:input_size_per_partition|output_size_per_partition|output_partition_size"
        r"|intermediate_size_per_partition|shard)\b.{0,60}(?:not divisible|must be divisible|indivisible"
        r"|not a multiple)",
        CERTAIN,
    ),
    line(r"(?:output_size of gate's and up's weight|input_size of down's weight) = (?P<size>\d+)", CERTAIN),
    line(r"size_k must (?:be )?divisible by BLOCK_SIZE_K", CERTAIN),
    line(
        r"input size is not aligned with the quantized weight shape"
        r"|Consider reducing tensor_parallel_size or running with --quantization gptq",
        CERTAIN,
    ),
    line(
        r"(?:MXFP8|MXFP4|NVFP4|FP8_PB_WO|Marlin|machete)\S* .{0,60}(?:requires|needs) .{0,60}(?:to be "
        r"|must be )?(?:divisible by|multiple of)",
        LIKELY,
    ),
    line(
        r"(?:moe_)?intermediate[_ ]size.{0,100}(?:divisible by|multiple of) .{0,40}(?:\b128\b|\b64\b|\b32\b|block)",
        LIKELY,
    ),
    line(
        r"^(?=.*(?:\bTP ?=? ?\d|tensor[- ]parallel))(?=.*(?:divisib|multiple|does not fit|uneven"
        r"|not aligned)).*(?:block size|group size|block scale|fp8 block|block_n|blocks? of 128)",
        LIKELY,
    ),
)
FIX = (
    (
        "lower the tensor-parallel size so that the part is a multiple of the block ({block}); rest of the "
        "GPUs: --pipeline-parallel-size or --data-parallel-size with --enable-expert-parallel"
    ),
    "or take a checkpoint with another block or group size (quantization_config in its config.json)",
)
EXPLAINS = ("tp-size-not-divisible",)
