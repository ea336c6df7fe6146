"""By-passes of SGLang's JIT kernels.

Detects: SGLANG_FP8_PAGED_MQA_LOGITS_TORCH, SGLANG_TOPK_TRANSFORM_512_TORCH, SGLANG_OPT_USE_TILELANG_MHC_PRE or ..._POST
in a recipe for SGLang.
Why: they replace kernels of the sparse indexer that do not compile for sm_121. They bring the server up; the decode
kernel (FlashMLA) has no such switch, and the first request showed it after six hours of work.
Evidence: the variables.
Remedy: none by themselves; whether the model is known to serve is what COMPAT001 says.
References: https://al-engr.com/sglang-deepseek-spark-pivot.html
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import RecipeState
from sparkwright.rules.compat.reading import served_on_gb10, variables
from sparkwright.rules.rule import Context

CODE = "RCP016"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "by-passes of SGLang's JIT kernels do not reach the decode kernel"
_VARIABLES = (
    "SGLANG_FP8_PAGED_MQA_LOGITS_TORCH",
    "SGLANG_TOPK_TRANSFORM_512_TORCH",
    "SGLANG_OPT_USE_TILELANG_MHC_PRE",
    "SGLANG_OPT_USE_TILELANG_MHC_POST",
)


def check(context: Context) -> Iterator[Finding]:
    recipe, env = served_on_gb10(context, "sglang"), variables(context)
    given = [f"{name}={env[name]}" for name in _VARIABLES if name in env]
    if recipe and given and recipe.state is not RecipeState.REFUSED:
        yield Finding(
            CODE,
            SEVERITY,
            "env",
            "by-passes of SGLang's JIT kernels do not reach the decode kernel",
            ", ".join(given),
            "they bring the server up; the first request may still end with `Unsupported architecture`",
            "send a real request before you rely on it; `sparkwright up` does",
        )
