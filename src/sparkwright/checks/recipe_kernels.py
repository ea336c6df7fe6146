"""Checks of a recipe's kernels, loaders and images."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files

from sparkwright.checks.compat.combination import flag_text, is_switched_on, shape_of, variables
from sparkwright.checks.reading import served_on_gb10
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.recipe import Recipe, RecipeState
from sparkwright.engines.catalog import traits
from sparkwright.engines.version import within

_KNOWN = tomllib.loads((files("sparkwright.checks") / "engine_signs.toml").read_text(encoding="utf-8"))
_CUTLASS, _IMAGES = _KNOWN["cutlass"], _KNOWN["images"]
_ITSELF = "chooses automatically"
_ATOMIC_ADD = "VLLM_MARLIN_USE_ATOMIC_ADD"
_PTXAS = "TRITON_PTXAS_PATH"
_FA_VERSION = "attention-config.flash_attn_version"  # the engine takes another version


def nvfp4_cutlass(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP008"), shape_of(context)
    if recipe is None or shape is None or not shape.experts or "nvfp4" not in (shape.format, shape.expert_format):
        return
    seen = _chosen(recipe, variables(context))
    if seen:
        mild = _ITSELF in seen and within(recipe.engine.name, recipe.engine.version, _CUTLASS["mild"])
        yield Found(seen, severity=INFO if mild else WARN, subject="flags.moe-backend")


def _chosen(recipe: Recipe, env: Mapping[str, str]) -> str:
    """The setting that chooses a doubtful kernel, or the lack of one that avoids it."""
    backend = flag_text(recipe, "moe-backend").lower()
    if backend in _CUTLASS["backends"]:
        return f"moe-backend: {backend}"
    if backend not in ("", "auto") or not within(recipe.engine.name, recipe.engine.version, _CUTLASS["doubted"]):
        return ""
    if env.get("VLLM_USE_FLASHINFER_MOE_FP4") == "1":
        return "VLLM_USE_FLASHINFER_MOE_FP4=1"
    if env.get("VLLM_TEST_FORCE_FP8_MARLIN") == "1":
        return ""
    linear = "; VLLM_NVFP4_GEMM_BACKEND is for linear layers" if "VLLM_NVFP4_GEMM_BACKEND" in env else ""
    return f"vLLM {recipe.engine.version} {_ITSELF}, CUTLASS before Marlin{linear}"


def marlin_atomic_add(context: Context) -> Iterator[Found]:
    recipe, env = served_on_gb10(context, "RCP009"), variables(context)
    chosen = _marlin(recipe, env) if recipe else ""
    if recipe and chosen and env.get(_ATOMIC_ADD) != "1":
        yield Found(
            f"{chosen}; {_ATOMIC_ADD}={env.get(_ATOMIC_ADD, '(not set)')}",
            fix=f"env: {{{_ATOMIC_ADD}: 1}}",
            severity=INFO if within(recipe.engine.name, recipe.engine.version, _KNOWN["marlin"]["mild"]) else WARN,
            subject=f"env.{_ATOMIC_ADD}",
        )


def _marlin(recipe: Recipe, env: Mapping[str, str]) -> str:
    quantization = flag_text(recipe, "quantization")
    if flag_text(recipe, "moe-backend") == "marlin":
        return "moe-backend: marlin"
    if quantization.endswith("_marlin"):
        return f"quantization: {quantization}"
    chosen = {"VLLM_NVFP4_GEMM_BACKEND": "marlin", "VLLM_TEST_FORCE_FP8_MARLIN": "1"}
    return next((f"{name}={value}" for name, value in chosen.items() if env.get(name) == value), "")


def flashinfer_fp8(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP010"), shape_of(context)
    if recipe is None or flag_text(recipe, "attention-backend").upper() != "FLASHINFER":
        return
    weights = shape.format if shape else ""
    if recipe.serving.kv_dtype.startswith("fp8") or weights == "fp8":
        yield Found(
            f"attention-backend: FLASHINFER; KV {recipe.serving.kv_dtype or 'auto'}, weights {weights or 'not known'}",
            subject="flags.attention-backend",
        )


def no_graphs(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP011"), shape_of(context)
    if recipe is None or (shape and shape.architecture.startswith(tuple(_KNOWN["eager"]["better"]))):
        return
    # SGLang over several nodes has deadlocked in the capture (ENG026).
    name = traits(recipe).eager_flag
    if is_switched_on(recipe, name) and (name == "enforce-eager" or recipe.nodes == 1):
        yield Found(
            f"{name}: true",
            fix=f"remove flags.{name}; if a start needs it, fix what it works around",
            subject=f"flags.{name}",
        )


def fastsafetensors(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP012")
    if (
        recipe
        and flag_text(recipe, "load-format") == "fastsafetensors"
        and re.search(_IMAGES["without_fastsafetensors"], recipe.engine.image)
    ):
        yield Found(f"load-format: fastsafetensors; image {recipe.engine.image}", subject="flags.load-format")


def mxfp4_loader(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP013"), shape_of(context)
    if recipe is None or shape is None or not shape.architecture or shape.architecture.startswith("GptOss"):
        return
    if flag_text(recipe, "quantization") == "mxfp4" and within(recipe.engine.name, recipe.engine.version, "<0.20"):
        yield Found(
            f"quantization: mxfp4; architecture {shape.architecture}",
            title=f"MXFP4 loader of vLLM {recipe.engine.version} supports gpt-oss only",
            subject="flags.quantization",
        )


def ptxas_missing(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP015")
    if recipe and re.search(_IMAGES["without_ptxas"], recipe.engine.image) and not variables(context).get(_PTXAS):
        yield Found(
            f"image {recipe.engine.image}; {_PTXAS} is not set",
            fix=f"env: {{{_PTXAS}: /usr/local/cuda/bin/ptxas}}",
            subject=f"env.{_PTXAS}",
        )


def jit_bypass(context: Context) -> Iterator[Found]:
    recipe, env = served_on_gb10(context, "RCP016"), variables(context)
    given = [f"{name}={env[name]}" for name in _KNOWN["kernels"]["bypasses"] if name in env]
    if recipe and given and recipe.state is not RecipeState.REFUSED:
        yield Found(", ".join(given), subject="env")


def flash_attention_3(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP018")
    if recipe is None:
        return
    for name in traits(recipe).fa3:
        mild = name == _FA_VERSION
        if flag_text(recipe, name).lower() == ("3" if mild else "fa3"):
            yield Found(
                f"{name}: {flag_text(recipe, name)}",
                cause="vLLM takes another version automatically" if mild else "the engine ends while it loads",
                fix=f"remove flags.{name}" if mild else f"flags.{name}: flashinfer, or triton",
                severity=INFO if mild else OVERRIDE,
                subject=f"flags.{name}",
            )


def piecewise_on_ray(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP020")
    if recipe and flag_text(recipe, "compilation-config.cudagraph_mode").upper() == "PIECEWISE":
        yield Found("cudagraph_mode: PIECEWISE on vllm-ray", subject="flags.compilation-config")


CHECKS = explained(
    __file__,
    Check("RCP008", WARN, "NVFP4 experts without the Marlin kernel", nvfp4_cutlass),
    Check("RCP009", WARN, "Marlin without atomic addition", marlin_atomic_add),
    Check("RCP010", INFO, "FlashInfer attention with FP8 (disputed)", flashinfer_fp8),
    Check("RCP011", WARN, "CUDA graphs are disabled", no_graphs),
    Check("RCP012", OVERRIDE, "image has no fastsafetensors loader", fastsafetensors),
    Check("RCP013", OVERRIDE, "MXFP4 loader supports gpt-oss only", mxfp4_loader),
    Check("RCP015", WARN, "image's ptxas does not support sm_121", ptxas_missing),
    Check("RCP016", INFO, "JIT bypass does not cover the decode kernel", jit_bypass),
    Check("RCP018", OVERRIDE, "FlashAttention 3 not supported on sm_121", flash_attention_3),
    Check("RCP020", WARN, "PIECEWISE CUDA graphs on Ray are slow", piecewise_on_ray),
)
