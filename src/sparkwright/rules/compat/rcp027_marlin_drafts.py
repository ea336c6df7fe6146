"""Drafts of the model itself on the Marlin kernel.

Detects: vLLM with `moe-backend: marlin`, speculation `mtp` and no `moe_backend` of its own for the drafts.
Why: the layers that draft are not quantized, and Marlin takes quantized experts only: the start ends while the drafter
is built.
Evidence: the flag, and the drafts' options.
Remedy: `speculation.options: {moe_backend: triton}`.
References: field guide E77 (PUL, FHN); https://github.com/vllm-project/recipes (Qwen3.6-35B-A3B)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP027"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the drafts' experts cannot run on Marlin"


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *VLLM)
    if recipe is None or recipe.speculation.method != "mtp" or flag(recipe, "moe-backend") != "marlin":
        return
    if recipe.speculation.options.get("moe_backend") in (None, "marlin"):
        yield Finding(
            CODE,
            SEVERITY,
            "speculation.options",
            "the drafts' experts cannot run on Marlin",
            "moe-backend: marlin; the drafts take it over",
            "they are not quantized, and Marlin takes quantized experts only",
            "speculation.options: {moe_backend: triton}",
        )
