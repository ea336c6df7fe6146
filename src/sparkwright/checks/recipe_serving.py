"""Checks of a recipe's memory, speculation and splits."""

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.checks.compat.combination import flag_text, is_switched_on, shape_of, variables
from sparkwright.checks.reading import driver_versions, served_on_gb10
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.plan import Advice, split_text
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.engines.catalog import traits

_RAY_MONITOR = "RAY_memory_monitor_refresh_ms"
_FRACTION_MOST = 0.90
_LEAST_ANSWER = 512
_ANSWER_LIMITS = ("override-generation-config.max_new_tokens", "preferred-sampling-params.max_new_tokens")
_ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_DISPUTED_DRIVER = "580.159.03"
_DSPARK_BLOCK = 5
_REPETITION = "override-generation-config.repetition_penalty"
_TRTLLM_SERVED, _TRTLLM_DEFAULT = 0.4, 0.9


def ray_monitor(context: Context) -> Iterator[Found]:
    value = variables(context).get(_RAY_MONITOR, "0")
    if served_on_gb10(context, "RCP004") and value != "0":
        yield Found(
            f"{_RAY_MONITOR}={value}",
            fix=f"remove {_RAY_MONITOR}: the launcher sets it to 0",
            subject=f"env.{_RAY_MONITOR}",
        )


def memory_ceiling(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP007")
    if recipe is None or recipe.serving.kv_cache_bytes:
        return
    given, (calm, hot) = recipe.serving.memory_fraction, _limits(recipe)
    if given <= calm:
        return
    severity = WARN if given > hot else INFO
    also = "; others have served 0.83 to 0.86 so" if severity is INFO else ""
    yield Found(
        f"memory_fraction: {given:g}; {calm:g} is known to hold{also}",
        title=f"memory fraction {given:g} is above the proven limit for {recipe.nodes} node(s)",
        cause="out of memory or Xid 43 under load"
        if given > _FRACTION_MOST
        else "little is left of each node for bursts and for the system",
        fix=f"serving.memory_fraction: {calm:g}",
        severity=severity,
        subject="serving.memory_fraction",
    )


def _limits(recipe: Recipe) -> tuple[float, float]:
    """Memory fractions: nothing is reported up to the first, above the second it is a warning."""
    if recipe.nodes == 1:
        return 0.87, 0.87
    return traits(recipe).proven if recipe.nodes == 2 else (0.82, 0.85)


def few_answer_tokens(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP014")
    if recipe is None or not recipe.parsers.reasoning:
        return
    for name in _ANSWER_LIMITS:
        value = flag_text(recipe, name)
        if value.isdecimal() and int(value) < _LEAST_ANSWER:
            yield Found(
                f"{name}: {value}; reasoning parser {recipe.parsers.reasoning}",
                fix=f"{_LEAST_ANSWER} at least, 1024 for tools; or leave it to the client",
                subject=f"flags.{name}",
            )


def expandable_segments(context: Context) -> Iterator[Found]:
    env = variables(context)
    name = next((n for n in _ALLOCATORS if "expandable_segments:true" in env.get(n, "").lower()), "")
    nodes = [node for node, version, _ in driver_versions(context) if version == _DISPUTED_DRIVER]
    if served_on_gb10(context) and name and nodes:
        yield Found(f"{name}={env[name]}; driver {_DISPUTED_DRIVER} on {', '.join(nodes)}", subject=f"env.{name}")


def long_drafts(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context), shape_of(context)
    if recipe is None or shape is None or not shape.architecture.startswith("DeepseekV4"):
        return
    if recipe.speculation.method == "dspark" and recipe.speculation.tokens > _DSPARK_BLOCK:
        yield Found(
            f"dspark, {recipe.speculation.tokens} tokens; its block is {_DSPARK_BLOCK}",
            fix=f"speculation.tokens: {_DSPARK_BLOCK}",
            subject="speculation.tokens",
        )


def ngram_on_state(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context, "RCP024"), shape_of(context)
    if recipe and shape and shape.state_layers and recipe.speculation.method == "ngram":
        yield Found(
            f"ngram; {shape.state_layers} of {shape.layers} layers keep a state {shape.state_kind}".rstrip(),
            subject="speculation.method",
        )


def mapped_model(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP025")
    if recipe is None or "0" in (flag_text(recipe, "n-gpu-layers"), flag_text(recipe, "gpu-layers")):
        return
    mapped = (
        "mmap" if is_switched_on(recipe, "mmap") else "load-mode" if flag_text(recipe, "load-mode") == "mmap" else ""
    )
    if mapped:
        yield Found(f"{mapped}: {flag_text(recipe, mapped)}", fix=f"remove flags.{mapped}", subject=f"flags.{mapped}")


def repetition_penalty(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP026")
    if recipe is None or recipe.speculation.method not in ("dspark", "mtp"):
        return
    value = flag_text(recipe, _REPETITION)
    if value not in ("", "1", "1.0"):
        yield Found(
            f"repetition_penalty: {value}; speculation {recipe.speculation.method}",
            subject="flags.override-generation-config",
        )


def marlin_drafts(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP027")
    if recipe is None or recipe.speculation.method != "mtp" or flag_text(recipe, "moe-backend") != "marlin":
        return
    if recipe.speculation.options.get("moe_backend") in (None, "marlin"):
        yield Found("moe-backend: marlin; the drafts take it over", subject="speculation.options")


def experts_split(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context), shape_of(context)
    if recipe is None or shape is None or not shape.architecture.startswith("MiniMaxM2"):
        return
    own = recipe.parallelism
    if own.tp > 1 and recipe.nodes > 1:
        both = (own, replace(own, ep=not own.ep))
        yield Found("; ".join(_estimate(context.advice, split) for split in both), subject="parallelism.ep")


def _estimate(advice: Advice | None, wanted: Parallelism) -> str:
    splits = advice.splits if advice else ()
    cost = next((split.cost for split in splits if split.parallelism == wanted and split.cost), None)
    step = f": {cost.step[0] * 1000:.0f} to {cost.step[1] * 1000:.0f} ms a step by our estimate" if cost else ""
    return split_text(wanted) + step


def trtllm_fraction(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP030")
    if recipe is None or recipe.nodes == 1:
        return
    given = recipe.serving.memory_fraction
    if (given or _TRTLLM_DEFAULT) > _TRTLLM_SERVED:
        yield Found(
            f"memory_fraction: {given:g}" if given else "memory_fraction is not given; the engine's own is 0.9",
            subject="serving.memory_fraction",
        )


CHECKS = explained(
    __file__,
    Check("RCP004", WARN, "Ray memory monitor may kill workers", ray_monitor),
    Check("RCP007", WARN, "memory fraction above the proven limit", memory_ceiling),
    Check("RCP014", WARN, "max_tokens too low for a reasoning model", few_answer_tokens),
    Check("RCP021", INFO, "expandable_segments on this driver (disputed)", expandable_segments),
    Check("RCP023", WARN, "more draft tokens than the drafter supports", long_drafts),
    Check("RCP024", OVERRIDE, "n-gram speculation corrupts recurrent-state models", ngram_on_state),
    Check("RCP025", WARN, "mmap doubles the model in unified memory", mapped_model),
    Check("RCP026", WARN, "repetition penalty with speculative decoding", repetition_penalty),
    Check("RCP027", WARN, "draft experts cannot run on Marlin", marlin_drafts),
    Check("RCP029", INFO, "tensor or expert parallelism (disputed)", experts_split),
    Check("RCP030", INFO, "TensorRT-LLM memory fraction (disputed)", trtllm_fraction),
)
