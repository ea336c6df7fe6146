"""The weights do not fit on the node.

Detects: an out-of-memory error while weights are created or loaded, llama.cpp's failed buffer, or the arithmetic in
  a report.
Why: checkpoint divided by the number of ranks is more than the memory, or leaves nothing for KV cache and host.
Evidence: the error inside the loader; the sizes.
Remedy: a smaller quantization, more nodes, less context.
References: seed 001; gb10.md D4, A1
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LSIZ010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the weights are too large for the node"
CAUSE = "model-weights-too-large-for-node"
SIGNS = (
    near(
        r"in (?:load_model|load_weights|create_weights|initialize_model|_load_model)\b|model_loader[/.]?\w*(?:\.py"
        r"|\.load_model)",
        r"OutOfMemoryError|CUDA out of memory",
        sure=LIKELY,
        within=40,
    ),
    line(r"allocating [\d.]+ MiB on device \d+: cudaMalloc failed: out of memory", LIKELY),
    line(r"(?:unable|failed) to allocate (?:CUDA|RPC)\d*.{0,40} buffer", LIKELY),
    line(r"failed to fit params to free device memory", 0.85, unless=r"already set by user"),
    line(
        r"projected to use [\d.]+ MiB of (?:device|host) memory vs\. [\d.]+ MiB of free.{0,60}(?:cannot|failed|unable)",
        LIKELY,
    ),
    near(
        r"\b(?:checkpoint|weights?|FP8 model|BF16 model|NVFP4 model|full model)\b.{0,60}\b\d+(?:\.\d+)? ?G(?:i?B)?\b",
        r"(?:leaves?|leaving|only) ~?\d+(?:\.\d+)? ?GB? for (?:the )?KV|(?:does(?: not|n't)|won't|cannot"
        r"|can't) fit (?:on|in|into)|too (?:large|big) for (?:a |one |the |each )?(?:single )?(?:node|spark|gpu"
        r"|device|memory)|exceeds (?:the )?(?:available |unified |GPU |node'?s? )?memory",
        sure=LIKELY,
        within=2,
    ),
    line(r"(?:GB10|DGX Spark|GPU|Spark).{0,60}(?:模型|权重).{0,20}(?:放不下|装不下|太大)", LIKELY),
    near(
        r"OutOfMemoryError|CUDA out of memory|cudaMalloc failed",
        r"load_weights|weight_loader|create_weights|(?:model|weights|checkpoint) (?:is|are|has|of"
        r"|needs?) (?:about |~)?\d{2,3}(?:\.\d+)? ?G",
        sure=0.7,
        within=12,
    ),
)
FIX = (
    "sparkwright plan {recipe}   # weights per node against its memory, before anything is downloaded",
    "a 4-bit checkpoint (NVFP4, MXFP4, AWQ) has about a quarter of the bytes of bf16",
    "more nodes: --tensor-parallel-size or --pipeline-parallel-size",
)
EXPLAINS = ("kv-cache-no-memory-left",)
