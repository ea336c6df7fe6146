"""FlashInfer attention with FP8.

Detects: vLLM with `attention-backend: FLASHINFER` and an FP8 KV cache or FP8 weights.
Why: two sides. One owner on vLLM 0.19.0 says TRITON_ATTN and never FlashInfer: wrong accuracy with FP8 models on
Blackwell (vLLM issue 35138). Other side: MiniMax-M2.7 NVFP4 (0.21.0) and Qwen3.6-35B (0.28.0) are served with
FLASHINFER and an FP8 cache by those who published their figures.
Evidence: the flag, the KV type, the weights' format.
Remedy: where answers are doubtful, compare with `attention-backend: TRITON_ATTN`.
References: https://conselara.dev/tags/vllm/; https://github.com/vllm-project/vllm/issues/35138; field guide D3
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10, shape_of
from sparkwright.rules.rule import Context

CODE = "RCP010"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "FlashInfer attention with FP8: sources contradict each other"


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = served_on_gb10(context, *VLLM), shape_of(context)
    if recipe is None or flag(recipe, "attention-backend").upper() != "FLASHINFER":
        return
    weights = shape.format if shape else ""
    if recipe.serving.kv_dtype.startswith("fp8") or weights == "fp8":
        yield Finding(
            CODE,
            SEVERITY,
            "flags.attention-backend",
            "FlashInfer attention with FP8: sources contradict each other",
            f"attention-backend: FLASHINFER; KV {recipe.serving.kv_dtype or 'auto'}, weights {weights or 'not known'}",
            "wrong accuracy was reported on Blackwell for vLLM 0.19.0 (issue 35138); others serve so with good answers",
            "where answers are doubtful, compare with flags.attention-backend: TRITON_ATTN",
        )
