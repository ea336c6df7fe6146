"""Checks of a recipe's kernels, loaders and images."""

import re
from collections.abc import Iterator, Mapping

from sparkwright.checks.recipes import served_on_gb10
from sparkwright.compat.combination import flag, on, shape_of, variables
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.recipe import Recipe, RecipeState
from sparkwright.engines.catalog import traits
from sparkwright.engines.version import within

_WRONG = ("cutlass", "flashinfer_cutlass", "flashinfer_trtllm")
_ITSELF = "chooses automatically"
_MILD = ">=0.24"
_DOUBTED = "<0.30"  # whose own choice nobody has published as good


def nvfp4_cutlass(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP008"), shape_of(context)
    if recipe is None or shape is None or not shape.experts or "nvfp4" not in (shape.format, shape.expert_format):
        return
    seen = _chosen(recipe, variables(context))
    if seen:
        mild = _ITSELF in seen and within(recipe.engine.name, recipe.engine.version, _MILD)
        yield Found(seen, severity=INFO if mild else WARN, subject="flags.moe-backend")


def _chosen(recipe: Recipe, env: Mapping[str, str]) -> str:
    """What chooses a doubtful kernel, or that nothing keeps the version's own choice from being one."""
    backend = flag(recipe, "moe-backend").lower()
    if backend in _WRONG:
        return f"moe-backend: {backend}"
    if backend not in ("", "auto") or not within(recipe.engine.name, recipe.engine.version, _DOUBTED):
        return ""
    if env.get("VLLM_USE_FLASHINFER_MOE_FP4") == "1":
        return "VLLM_USE_FLASHINFER_MOE_FP4=1"
    if env.get("VLLM_TEST_FORCE_FP8_MARLIN") == "1":
        return ""
    linear = "; VLLM_NVFP4_GEMM_BACKEND is for linear layers" if "VLLM_NVFP4_GEMM_BACKEND" in env else ""
    return f"vLLM {recipe.engine.version} {_ITSELF}, CUTLASS before Marlin{linear}"


_ATOMIC_ADD = "VLLM_MARLIN_USE_ATOMIC_ADD"
_SERVED_WITHOUT = ">=0.28"


def marlin_atomic_add(context: Context) -> Iterator[Found]:
    recipe, env = served_on_gb10(context, "RCP009"), variables(context)
    chosen = _marlin(recipe, env) if recipe else ""
    if recipe and chosen and env.get(_ATOMIC_ADD) != "1":
        yield Found(
            f"{chosen}; {_ATOMIC_ADD}={env.get(_ATOMIC_ADD, '(not set)')}",
            fix=f"env: {{{_ATOMIC_ADD}: 1}}",
            severity=INFO if within(recipe.engine.name, recipe.engine.version, _SERVED_WITHOUT) else WARN,
            subject=f"env.{_ATOMIC_ADD}",
        )


def _marlin(recipe: Recipe, env: Mapping[str, str]) -> str:
    quantization = flag(recipe, "quantization")
    if flag(recipe, "moe-backend") == "marlin":
        return "moe-backend: marlin"
    if quantization.endswith("_marlin"):
        return f"quantization: {quantization}"
    chosen = {"VLLM_NVFP4_GEMM_BACKEND": "marlin", "VLLM_TEST_FORCE_FP8_MARLIN": "1"}
    return next((f"{name}={value}" for name, value in chosen.items() if env.get(name) == value), "")


def flashinfer_fp8(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP010"), shape_of(context)
    if recipe is None or flag(recipe, "attention-backend").upper() != "FLASHINFER":
        return
    weights = shape.format if shape else ""
    if recipe.serving.kv_dtype.startswith("fp8") or weights == "fp8":
        yield Found(
            f"attention-backend: FLASHINFER; KV {recipe.serving.kv_dtype or 'auto'}, weights {weights or 'not known'}",
            subject="flags.attention-backend",
        )


_BETTER_WITHOUT = ("MiniMaxM3", "Glm")


def no_graphs(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP011"), shape_of(context)
    if recipe is None or (shape and shape.architecture.startswith(_BETTER_WITHOUT)):
        return
    # SGLang over several nodes has deadlocked in the capture (ENG026).
    name = traits(recipe).eager_flag
    if on(recipe, name) and (name == "enforce-eager" or recipe.nodes == 1):
        yield Found(
            f"{name}: true",
            fix=f"remove flags.{name}; if a start needs it, fix what it works around",
            subject=f"flags.{name}",
        )


_FASTSAFETENSORS_WITHOUT = re.compile(r"nvcr\.io/nvidia/vllm:26\.0[34]\b")


def fastsafetensors(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP012")
    if (
        recipe
        and flag(recipe, "load-format") == "fastsafetensors"
        and _FASTSAFETENSORS_WITHOUT.search(recipe.engine.image)
    ):
        yield Found(f"load-format: fastsafetensors; image {recipe.engine.image}", subject="flags.load-format")


def mxfp4_loader(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP013"), shape_of(context)
    if recipe is None or shape is None or not shape.architecture or shape.architecture.startswith("GptOss"):
        return
    if flag(recipe, "quantization") == "mxfp4" and within(recipe.engine.name, recipe.engine.version, "<0.20"):
        yield Found(
            f"quantization: mxfp4; architecture {shape.architecture}",
            title=f"MXFP4 loader of vLLM {recipe.engine.version} supports gpt-oss only",
            subject="flags.quantization",
        )


_PTXAS = "TRITON_PTXAS_PATH"
_NO_PTXAS = re.compile(r"nvcr\.io/nvidia/vllm:(25\.\d\d|26\.0[1-4])\b")


def ptxas_missing(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP015")
    if recipe and _NO_PTXAS.search(recipe.engine.image) and not variables(context).get(_PTXAS):
        yield Found(
            f"image {recipe.engine.image}; {_PTXAS} is not set",
            fix=f"env: {{{_PTXAS}: /usr/local/cuda/bin/ptxas}}",
            subject=f"env.{_PTXAS}",
        )


_VARIABLES = (
    "SGLANG_FP8_PAGED_MQA_LOGITS_TORCH",
    "SGLANG_TOPK_TRANSFORM_512_TORCH",
    "SGLANG_OPT_USE_TILELANG_MHC_PRE",
    "SGLANG_OPT_USE_TILELANG_MHC_POST",
)


def jit_bypass(context: Context) -> Iterator[Found]:
    recipe, env = served_on_gb10(context, "RCP016"), variables(context)
    given = [f"{name}={env[name]}" for name in _VARIABLES if name in env]
    if recipe and given and recipe.state is not RecipeState.REFUSED:
        yield Found(", ".join(given), subject="env")


_CHOSEN_ANEW = "attention-config.flash_attn_version"  # the engine takes another version


def flash_attention_3(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP018")
    if recipe is None:
        return
    for name in traits(recipe).fa3:
        mild = name == _CHOSEN_ANEW
        if flag(recipe, name).lower() == ("3" if mild else "fa3"):
            yield Found(
                f"{name}: {flag(recipe, name)}",
                cause="vLLM takes another version automatically" if mild else "the engine ends while it loads",
                fix=f"remove flags.{name}" if mild else f"flags.{name}: flashinfer, or triton",
                severity=INFO if mild else OVERRIDE,
                subject=f"flags.{name}",
            )


def piecewise_on_ray(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP020")
    if recipe and flag(recipe, "compilation-config.cudagraph_mode").upper() == "PIECEWISE":
        yield Found("cudagraph_mode: PIECEWISE on vllm-ray", subject="flags.compilation-config")


CHECKS = (
    Check("RCP008", WARN, "NVFP4 experts without the Marlin kernel", nvfp4_cutlass).about(
        detects="vLLM with a model of NVFP4 experts and `moe-backend` cutlass, flashinfer_cutlass or "
        "flashinfer_trtllm, or VLLM_USE_FLASHINFER_MOE_FP4=1; before 0.30 also where nothing chooses Marlin. "
        "VLLM_NVFP4_GEMM_BACKEND chooses for linear layers only; for experts `moe-backend: marlin` does, and "
        "VLLM_TEST_FORCE_FP8_MARLIN=1 up to 0.27.",
        why="on sm_121 these kernels gave wrong text without an error for three owners; Marlin (4-bit weights, "
        "16-bit arithmetic) is right, and faster there. vLLM's own order has CUTLASS before Marlin. Other "
        "side: a recipe of spark-vllm-docker and one of the registry choose cutlass, and from 0.26 on models "
        "are served by the version's own choice (MiniMax-M3, Inkling, Qwen3.8-Flash-Next): from 0.24 to 0.29 "
        "that choice only informs.",
        cause="CUTLASS and FlashInfer FP4 gave wrong text without an error for three owners; two recipes use it",
        fix="flags.moe-backend: marlin",
        see=("https://conselara.dev/tags/vllm/", "https://al-engr.com/minimax-sglang-debug.html"),
    ),
    Check("RCP009", WARN, "Marlin without atomic addition", marlin_atomic_add).about(
        detects="vLLM with Marlin chosen (`moe-backend: marlin`, `quantization: ..._marlin`, "
        "VLLM_NVFP4_GEMM_BACKEND=marlin or VLLM_TEST_FORCE_FP8_MARLIN=1) and VLLM_MARLIN_USE_ATOMIC_ADD not "
        "1.",
        why="one owner saw a race in Marlin on sm_121 that gives wrong output without it; the registry's recipes "
        "set it, too. Other side: vLLM's source has it as an experimental gain in speed for small matrices, "
        "off by default; vllm-project's own recipe for Qwen3.6-35B serves on Marlin in 0.28 without it: from "
        "there it only informs.",
        cause="one owner saw wrong output from a race on sm_121; vLLM has it off by default, and others serve so",
        fix="env: VLLM_MARLIN_USE_ATOMIC_ADD: 1",
        see=("https://conselara.dev/tags/vllm/",),
    ),
    Check("RCP010", INFO, "FlashInfer attention with FP8 (disputed)", flashinfer_fp8).about(
        detects="vLLM with `attention-backend: FLASHINFER` and an FP8 KV cache or FP8 weights.",
        why="two sides. One owner on vLLM 0.19.0 recommends TRITON_ATTN and never FlashInfer: wrong accuracy with FP8 "
        "models on Blackwell (vLLM issue 35138). Other side: MiniMax-M2.7 NVFP4 (0.21.0) and Qwen3.6-35B "
        "(0.28.0) are served with FLASHINFER and an FP8 cache by those who published their figures.",
        cause="wrong accuracy was reported on Blackwell for vLLM 0.19.0 (issue 35138); others serve so with good "
        "answers",
        fix="where answers are doubtful, compare with flags.attention-backend: TRITON_ATTN",
        see=("https://conselara.dev/tags/vllm/", "https://github.com/vllm-project/vllm/issues/35138"),
    ),
    Check("RCP011", WARN, "CUDA graphs are disabled", no_graphs).about(
        detects="vLLM with `enforce-eager`; SGLang with `disable-cuda-graph` on one node.",
        why="59 tokens a second became 26 on sm_121. Other side: for MiniMax-M3 on four nodes PIECEWISE graphs "
        "were 33 to 54 % slower than none, and GLM-5.2 is served without: there it is no finding. SGLang "
        "over several nodes has deadlocked in the capture (ENG026), so it is none there either.",
        cause="measured on sm_121: 26 tokens/s instead of 59",
        fix="remove it, and fix what it works around",
        see=("https://conselara.dev/tags/vllm/",),
    ),
    Check("RCP012", OVERRIDE, "image has no fastsafetensors loader", fastsafetensors).about(
        detects="`load-format: fastsafetensors` with NVIDIA's vLLM images of 2026-03 and 2026-04.",
        why="they end with an ImportError; builds of the community and later images of vLLM have it.",
        cause="the start ends with an ImportError",
        fix="remove flags.load-format",
        see=("https://conselara.dev/tags/vllm/",),
    ),
    Check("RCP013", OVERRIDE, "MXFP4 loader supports gpt-oss only", mxfp4_loader).about(
        detects="vLLM up to 0.19 with `quantization: mxfp4` and an architecture other than gpt-oss.",
        why="its loader reads the experts as gpt-oss packs them; others end with an IndexError in fused_moe, and "
        "past that with a dtype or shape mismatch. There is no quantization to MXFP4 on the fly.",
        cause="loading ends with an IndexError in fused_moe: experts are packed differently",
        fix="remove flags.quantization, or write gptq_marlin for GPTQ and fp8 for FP8 checkpoints",
        see=("https://conselara.dev/tags/vllm/",),
    ),
    Check("RCP015", WARN, "image's ptxas does not support sm_121", ptxas_missing).about(
        detects="NVIDIA's vLLM images up to 2026-04 without TRITON_PTXAS_PATH.",
        why="Triton looks for ptxas where the image has none, or has an old one: the first request ends with "
        "`Value 'sm_121a' is not defined for option 'gpu-name'`. The variable does what the symlink of the "
        "guides does.",
        cause="the first request that needs a new kernel ends with `Value 'sm_121a' is not defined`",
        fix="env: TRITON_PTXAS_PATH: /usr/local/cuda/bin/ptxas (the launcher sets it for TensorRT-LLM automatically)",
        see=("https://conselara.dev/tags/vllm/",),
    ),
    Check("RCP016", INFO, "JIT bypass does not cover the decode kernel", jit_bypass).about(
        detects="SGLANG_FP8_PAGED_MQA_LOGITS_TORCH, SGLANG_TOPK_TRANSFORM_512_TORCH, SGLANG_OPT_USE_TILELANG_MHC_PRE "
        "or ..._POST in a recipe for SGLang.",
        why="they replace kernels of the sparse indexer that do not compile for sm_121. They get the server "
        "up; the decode kernel (FlashMLA) has no such switch, and the first request showed it after six "
        "hours of work.",
        cause="they get the server up; the first request may still end with `Unsupported architecture`",
        fix="send a real request before you rely on it; `sparkwright up` does",
        see=("https://al-engr.com/sglang-deepseek-spark-pivot.html",),
    ),
    Check("RCP018", OVERRIDE, "FlashAttention 3 not supported on sm_121", flash_attention_3).about(
        detects="SGLang with `attention-backend: fa3` (also for prefill or decode alone), vLLM with "
        "`flash_attn_version` 3 in `attention-config`.",
        why="its kernels are Hopper's, and what the datacenter's Blackwell has instead is missing on sm_121, "
        "too. SGLang ends with `FlashAttention v3 Backend requires SM>=80 and SM<=90`; vLLM takes another "
        "version by itself, which only informs.",
        fix="flashinfer or triton for SGLang; leave it out for vLLM",
        see=("https://al-engr.com/sglang-deepseek-spark-pivot.html",),
    ),
    Check("RCP020", WARN, "PIECEWISE CUDA graphs on Ray are slow", piecewise_on_ray).about(
        detects="vLLM on Ray over several nodes with `cudagraph_mode` PIECEWISE.",
        why="on two nodes with MiniMax-M2.7 it was 12 to 20 % slower than no graphs at all. Without Ray other "
        "models are served with PIECEWISE or FULL_AND_PIECEWISE.",
        cause="12 to 20 % were measured on two GB10 nodes with tensor parallel 2",
        fix="cudagraph_mode: NONE, or engine.name: vllm (its own multi-node mode)",
        see=("https://al-engr.com/minimax-sglang-debug.html",),
    ),
)
