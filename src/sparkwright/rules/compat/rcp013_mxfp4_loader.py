"""The MXFP4 loader for a model that is not gpt-oss.

Detects: vLLM up to 0.19 with `quantization: mxfp4` and an architecture other than gpt-oss.
Why: its loader reads the experts as gpt-oss packs them; others end with an IndexError in fused_moe, and past that with
a dtype or shape mismatch. There is no quantization to MXFP4 on the fly.
Evidence: the flag, the architecture, the version.
Remedy: leave the flag out for checkpoints that say their own method; gptq_marlin for GPTQ, fp8 for FP8.
References: https://conselara.dev/tags/vllm/ (gpt-oss checkpoints only: NGC 26.04 with vLLM 0.19.0)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.version import within
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10, shape_of
from sparkwright.rules.rule import Context

CODE = "RCP013"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the MXFP4 loader for a model that is not gpt-oss"


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = served_on_gb10(context, *VLLM), shape_of(context)
    if recipe is None or shape is None or not shape.architecture or shape.architecture.startswith("GptOss"):
        return
    if flag(recipe, "quantization") == "mxfp4" and within("vllm", recipe.engine.version, "<0.20"):
        yield Finding(
            CODE,
            SEVERITY,
            "flags.quantization",
            f"the MXFP4 loader of vLLM {recipe.engine.version} reads gpt-oss only",
            f"quantization: mxfp4; architecture {shape.architecture}",
            "loading ends with an IndexError in fused_moe: experts are packed differently",
            "remove flags.quantization, or write gptq_marlin for GPTQ and fp8 for FP8 checkpoints",
        )
