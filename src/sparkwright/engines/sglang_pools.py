"""SGLang's pools besides keys and values: windows of their own, and tiers in host memory. Read in 0.5.12 and 0.5.17."""

from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.engines.options import amount, flag_value, lmcache
from sparkwright.engines.version import is_since

# Architectures whose windows have a pool of their own; others keep every token of them (is_hybrid_swa_model).
_HYBRID = frozenset(
    (
        *("Llama4ForConditionalGeneration", "DeepseekV4ForCausalLM", "GptOssForCausalLM", "MiMoV2FlashForCausalLM"),
        *("MiMoV2ForCausalLM", "Step3p5ForCausalLM", "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"),
        "LagunaForCausalLM",
    )
)
_HYBRID_0517 = frozenset(
    (
        *("Step3p7ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration", "MellumForCausalLM"),
        *("InklingForConditionalGeneration", "UnlimitedOCRForCausalLM"),
    )
)
_HICACHE = 2.0  # times the pool, hicache-ratio's default


def windows(recipe: Recipe, architecture: str) -> bool:
    """True if windows have a pool of their own."""
    if str(flag_value(recipe, "disable-hybrid-swa-memory")).lower() == "true":
        return False
    listed = _HYBRID | _HYBRID_0517 if is_since(recipe, 0, 5, 17) else _HYBRID
    return not architecture or architecture in listed


def host_tier(recipe: Recipe, pool: int) -> tuple[float, str]:
    """Bytes a rank of HiCache or LMCache in host memory (0.5.12 to 0.5.17, memory_pool_host.py)."""
    if str(flag_value(recipe, "enable-lmcache")).lower() == "true":
        return lmcache(recipe), "LMCache's local CPU tier of each rank (LMCACHE_MAX_LOCAL_CPU_SIZE)"
    ours = max(1, recipe.serving.host_cache // 10**9) if recipe.serving.host_cache else 0
    if str(flag_value(recipe, "enable-hierarchical-cache")).lower() != "true" and not ours:
        return 0.0, ""
    if size := ours or amount(flag_value(recipe, "hicache-size")):
        return size * 1e9, f"HiCache: {size:g} GB a rank (hicache-size)"
    ratio = amount(flag_value(recipe, "hicache-ratio")) or _HICACHE
    return ratio * pool, f"HiCache: {ratio:g} x the pool of {gib(pool)} (hicache-ratio)"
