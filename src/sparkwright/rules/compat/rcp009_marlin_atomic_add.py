"""Marlin without atomic addition.

Detects: vLLM with Marlin chosen (`moe-backend: marlin`, `quantization: ..._marlin`, VLLM_NVFP4_GEMM_BACKEND=marlin or
VLLM_TEST_FORCE_FP8_MARLIN=1) and VLLM_MARLIN_USE_ATOMIC_ADD not 1.
Why: one owner saw a race in Marlin on sm_121 that gives wrong output without it; the registry's recipes set it, too.
Other side: vLLM's source has it as an experimental gain in speed for small matrices, off by default; vllm-project's own
recipe for Qwen3.6-35B serves on Marlin in 0.28 without it: from there it only informs.
Evidence: what chooses Marlin, and the variable.
Remedy: env: VLLM_MARLIN_USE_ATOMIC_ADD: 1.
References: https://conselara.dev/tags/vllm/; field guide D2, D3; vLLM 0.21.0's quantization/utils/marlin_utils.py
"""

from collections.abc import Iterator, Mapping

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.version import within
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10, variables
from sparkwright.rules.rule import Context

CODE = "RCP009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Marlin without atomic addition"
_VARIABLE = "VLLM_MARLIN_USE_ATOMIC_ADD"
_SERVED_WITHOUT = ">=0.28"


def check(context: Context) -> Iterator[Finding]:
    recipe, env = served_on_gb10(context, *VLLM), variables(context)
    chosen = _marlin(recipe, env) if recipe else ""
    if recipe and chosen and env.get(_VARIABLE) != "1":
        yield Finding(
            CODE,
            Severity.INFO if within("vllm", recipe.engine.version, _SERVED_WITHOUT) else SEVERITY,
            f"env.{_VARIABLE}",
            "Marlin without atomic addition",
            f"{chosen}; {_VARIABLE}={env.get(_VARIABLE, '(not set)')}",
            "one owner saw wrong output from a race on sm_121; vLLM has it off by default, and others serve so",
            f"env: {{{_VARIABLE}: 1}}",
        )


def _marlin(recipe: Recipe, env: Mapping[str, str]) -> str:
    quantization = flag(recipe, "quantization")
    if flag(recipe, "moe-backend") == "marlin":
        return "moe-backend: marlin"
    if quantization.endswith("_marlin"):
        return f"quantization: {quantization}"
    chosen = {"VLLM_NVFP4_GEMM_BACKEND": "marlin", "VLLM_TEST_FORCE_FP8_MARLIN": "1"}
    return next((f"{name}={value}" for name, value in chosen.items() if env.get(name) == value), "")
