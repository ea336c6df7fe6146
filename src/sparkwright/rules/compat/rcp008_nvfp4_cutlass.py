"""NVFP4 experts on a CUTLASS kernel.

Detects: vLLM with a model of NVFP4 experts and `moe-backend` cutlass, flashinfer_cutlass or flashinfer_trtllm, or
VLLM_USE_FLASHINFER_MOE_FP4=1; before 0.30 also where nothing chooses Marlin. VLLM_NVFP4_GEMM_BACKEND chooses for linear
layers only; for experts `moe-backend: marlin` does, and VLLM_TEST_FORCE_FP8_MARLIN=1 up to 0.27.
Why: on sm_121 these kernels gave wrong text without an error for three owners; Marlin (4-bit weights, 16-bit
arithmetic) is right, and faster there. vLLM's own order has CUTLASS before Marlin. Other side: a recipe of
spark-vllm-docker and one of the registry choose cutlass, and from 0.26 on models are served by the version's own
choice (MiniMax-M3, Inkling, Qwen3.8-Flash-Next): from 0.24 to 0.29 that choice only informs.
Evidence: the switch, or that there is none.
Remedy: `moe-backend: marlin`.
References: https://conselara.dev/tags/vllm/; https://al-engr.com/minimax-sglang-debug.html; field guide E55, E56, D2;
vllm/model_executor/layers/fused_moe/oracle/nvfp4.py of 0.19.0 to 0.33.0
"""

from collections.abc import Iterator, Mapping

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.version import within
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10, shape_of, variables
from sparkwright.rules.rule import Context

CODE = "RCP008"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "NVFP4 experts without the Marlin kernel"
_WRONG = ("cutlass", "flashinfer_cutlass", "flashinfer_trtllm")
_ITSELF = "chooses by itself"
_MILD = ">=0.24"
_DOUBTED = "<0.30"  # whose own choice nobody has published as good


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = served_on_gb10(context, *VLLM), shape_of(context)
    if recipe is None or shape is None or not shape.experts or "nvfp4" not in (shape.format, shape.expert_format):
        return
    seen = _chosen(recipe, variables(context))
    if seen:
        mild = _ITSELF in seen and within("vllm", recipe.engine.version, _MILD)
        yield Finding(
            CODE,
            Severity.INFO if mild else SEVERITY,
            "flags.moe-backend",
            "NVFP4 experts may run on a kernel that is wrong on sm_121",
            seen,
            "CUTLASS and FlashInfer FP4 gave wrong text without an error for three owners; two recipes use it",
            "flags.moe-backend: marlin",
        )


def _chosen(recipe: Recipe, env: Mapping[str, str]) -> str:
    """What chooses a doubtful kernel, or that nothing keeps the version's own choice from being one."""
    backend = flag(recipe, "moe-backend").lower()
    if backend in _WRONG:
        return f"moe-backend: {backend}"
    if backend not in ("", "auto") or not within("vllm", recipe.engine.version, _DOUBTED):
        return ""
    if env.get("VLLM_USE_FLASHINFER_MOE_FP4") == "1":
        return "VLLM_USE_FLASHINFER_MOE_FP4=1"
    if env.get("VLLM_TEST_FORCE_FP8_MARLIN") == "1":
        return ""
    linear = "; VLLM_NVFP4_GEMM_BACKEND is for linear layers" if "VLLM_NVFP4_GEMM_BACKEND" in env else ""
    return f"vLLM {recipe.engine.version} {_ITSELF}, CUTLASS before Marlin{linear}"
