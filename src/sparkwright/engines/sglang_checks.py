"""What SGLang cannot do of what a recipe asks: findings ENG024-ENG027.

Its own argument check refuses most of it within seconds, but only after image and weights were staged. Field guide C3.
"""

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.options import merge


def check_sglang(recipe: Recipe) -> tuple[Finding, ...]:
    return (*_stages(recipe), *_pinned_bytes(recipe), *_graphs(recipe), *_key(recipe))


def _stages(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG024; check_server_args (0.5.10) and check_pipeline_parallel_compat (0.5.23)."""
    p, method = recipe.parallelism, recipe.speculation.method
    if p.pp == 1 or not method:
        return ()
    return (
        Finding(
            "ENG024", Severity.OVERRIDE, "parallelism.pp", "SGLang does not speculate across pipeline stages",
            evidence=f"pp {p.pp} with speculation.method {method}",
            cause="its own argument check refuses the two together in nearly every version and mode",
            remedy=f"set tp: {p.tp * p.pp} and pp: 1, or leave speculation out",
        ),
    )  # fmt: skip


def _pinned_bytes(recipe: Recipe) -> tuple[Finding, ...]:
    size = recipe.serving.kv_cache_bytes
    if not size:
        return ()
    return (
        Finding(
            "ENG025", Severity.BLOCK, "serving.kv_cache_bytes", "SGLang pins the KV cache in tokens, not in bytes",
            evidence=f"kv_cache_bytes: {size}",
            cause="there is no option for it, and a limit that is dropped silently is none",
            remedy="set flags.max-total-tokens, or serving.memory_fraction",
        ),
    )  # fmt: skip


def _graphs(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG026; seed 001: a variable that 0.5.12 does not read was taken for the switch."""
    flags = merge({}, recipe.flags)
    off = [name for name in flags if name.startswith("disable-") and "cuda-graph" in name]
    if recipe.nodes == 1 or off or any(name.startswith("cuda-graph-") for name in flags):
        return ()
    return (
        Finding(
            "ENG026", Severity.WARN, "flags.disable-cuda-graph", "graph capture across nodes has deadlocked in SGLang",
            evidence="github.com/sgl-project/sglang/issues/19991; al-engr.com/minimax-sglang-debug.html: at 0 of 36 "
            "graphs for 34 minutes, SMs at 96 %, memory idle",
            cause="the ranks go out of step while they capture their collectives",
            remedy="if a start stands still in that phase: flags.disable-cuda-graph: true (a variable does not do it)",
        ),
    )  # fmt: skip


def _key(recipe: Recipe) -> tuple[Finding, ...]:
    if not (recipe.serving.api_key_env and recipe.engine.entrypoint):
        return ()
    return (
        Finding(
            "ENG027", Severity.WARN, "engine.entrypoint", "SGLang prints its API key into its own log",
            evidence=f"entrypoint: {' '.join(recipe.engine.entrypoint)}",
            cause="it logs all its arguments at start; our wrapper masks that, and this entrypoint goes around it",
            remedy="leave engine.entrypoint out, or keep the log to yourself",
        ),
    )  # fmt: skip
