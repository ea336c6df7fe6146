"""Checks of a recipe's memory, speculation and splits."""

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.checks.reading import (
    driver_versions,
)
from sparkwright.checks.recipes import served_on_gb10
from sparkwright.compat.combination import flag, on, shape_of, variables
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.plan import Advice, words
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.engines.catalog import traits

_VARIABLE = "RAY_memory_monitor_refresh_ms"


def ray_monitor(context: Context) -> Iterator[Found]:
    value = variables(context).get(_VARIABLE, "0")
    if served_on_gb10(context, "RCP004") and value != "0":
        yield Found(
            f"{_VARIABLE}={value}", fix=f"remove {_VARIABLE}: the launcher sets it to 0", subject=f"env.{_VARIABLE}"
        )


_NEVER = 0.90


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
        if given > _NEVER
        else "little is left of each node for bursts and for the system",
        fix=f"serving.memory_fraction: {calm:g}",
        severity=severity,
        subject="serving.memory_fraction",
    )


def _limits(recipe: Recipe) -> tuple[float, float]:
    """Up to where nothing is reported, and from where on it is a warning."""
    if recipe.nodes == 1:
        return 0.87, 0.87
    return traits(recipe).proven if recipe.nodes == 2 else (0.82, 0.85)


_LEAST = 512
_LIMITS = ("override-generation-config.max_new_tokens", "preferred-sampling-params.max_new_tokens")


def few_answer_tokens(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP014")
    if recipe is None or not recipe.parsers.reasoning:
        return
    for name in _LIMITS:
        value = flag(recipe, name)
        if value.isdecimal() and int(value) < _LEAST:
            yield Found(
                f"{name}: {value}; reasoning parser {recipe.parsers.reasoning}",
                fix=f"{_LEAST} at least, 1024 for tools; or leave it to the client",
                subject=f"flags.{name}",
            )


_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_DRIVER = "580.159.03"


def expandable_segments(context: Context) -> Iterator[Found]:
    env = variables(context)
    name = next((n for n in _VARIABLES if "expandable_segments:true" in env.get(n, "").lower()), "")
    nodes = [node for node, version, _ in driver_versions(context) if version == _DRIVER]
    if served_on_gb10(context) and name and nodes:
        yield Found(f"{name}={env[name]}; driver {_DRIVER} on {', '.join(nodes)}", subject=f"env.{name}")


_BLOCK = 5


def long_drafts(context: Context) -> Iterator[Found]:
    recipe, shape = served_on_gb10(context), shape_of(context)
    if recipe is None or shape is None or not shape.architecture.startswith("DeepseekV4"):
        return
    if recipe.speculation.method == "dspark" and recipe.speculation.tokens > _BLOCK:
        yield Found(
            f"dspark, {recipe.speculation.tokens} tokens; its block is {_BLOCK}",
            fix=f"speculation.tokens: {_BLOCK}",
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
    if recipe is None or "0" in (flag(recipe, "n-gpu-layers"), flag(recipe, "gpu-layers")):
        return
    mapped = "mmap" if on(recipe, "mmap") else "load-mode" if flag(recipe, "load-mode") == "mmap" else ""
    if mapped:
        yield Found(f"{mapped}: {flag(recipe, mapped)}", fix=f"remove flags.{mapped}", subject=f"flags.{mapped}")


_NAME = "override-generation-config.repetition_penalty"


def repetition_penalty(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP026")
    if recipe is None or recipe.speculation.method not in ("dspark", "mtp"):
        return
    value = flag(recipe, _NAME)
    if value not in ("", "1", "1.0"):
        yield Found(
            f"repetition_penalty: {value}; speculation {recipe.speculation.method}",
            subject="flags.override-generation-config",
        )


def marlin_drafts(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP027")
    if recipe is None or recipe.speculation.method != "mtp" or flag(recipe, "moe-backend") != "marlin":
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
    return words(wanted) + step


_SERVED, _DEFAULT = 0.4, 0.9


def trtllm_fraction(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP030")
    if recipe is None or recipe.nodes == 1:
        return
    given = recipe.serving.memory_fraction
    if (given or _DEFAULT) > _SERVED:
        yield Found(
            f"memory_fraction: {given:g}" if given else "memory_fraction is not given; the engine's own is 0.9",
            subject="serving.memory_fraction",
        )


CHECKS = (
    Check("RCP004", WARN, "Ray memory monitor may kill workers", ray_monitor).about(
        detects="vLLM on Ray with RAY_memory_monitor_refresh_ms other than 0, in the recipe or in a node's entry.",
        why="on unified memory the model is the node's memory: the monitor takes a load's peak for a leak and "
        "kills workers.",
        cause="it takes the peak of loading for a leak: weights and system share one memory",
        fix="remove it",
        see=("https://conselara.dev/tags/vllm/",),
    ),
    Check("RCP007", WARN, "memory fraction above the proven limit", memory_ceiling).about(
        detects="serving.memory_fraction over 0.90; over 0.87 on one node, over 0.85 on several (0.80 for SGLang); "
        "on several nodes it informs from 0.82 (0.75) on. Not where kv_cache_bytes pins the pool: then the "
        "fraction hardly counts.",
        why="CPU and GPU share the memory. One owner recommends never above 0.90 (OOM, Xid 43), 0.85 to 0.87 as a "
        "rule, 0.82 at 131K on two nodes; another 0.80 to 0.82 at most on two, 0.85 left about 1 GB a node; "
        "SGLang at 0.85 drove the thinner node into swap, 0.75 held. Other side: others served 0.835 to 0.86 "
        "on two nodes, and one recipe of the registry 0.9.",
        fix="the fraction that is known to hold; how much fits in truth is what `plan` shows (MEM001, MEM002)",
        see=(
            "https://conselara.dev/tags/vllm/",
            "https://forums.developer.nvidia.com/t/374742",
            "https://al-engr.com/minimax-sglang-debug.html",
        ),
    ),
    Check("RCP014", WARN, "max_tokens too low for a reasoning model", few_answer_tokens).about(
        detects="a reasoning parser and `override-generation-config` (vLLM) or `preferred-sampling-params` (SGLang) "
        "with fewer than 512 new tokens.",
        why="thinking is counted, too: the answer comes with `content: null` when the thoughts alone use the limit up.",
        cause="the thoughts use the limit up, and the answer is `content: null`",
        fix="1024 or more, or leave it to the client, which must then ask for 512 at least",
        see=("https://conselara.dev/tags/vllm/",),
    ),
    Check("RCP021", INFO, "expandable_segments on this driver (disputed)", expandable_segments).about(
        detects="PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF) with expandable_segments:True and driver 580.159.03.",
        why="two sides. With True others have 6 to 7 GiB more room (GLM-5.3, DeepSeek-V4). With False the kernel "
        "log's 0x51 allocation failures of this driver went from 163 to 1 a boot for one owner.",
        cause="they gave 6 to 7 GiB more room to some; without them another had 1 instead of 163 failures 0x51 a boot",
        fix="where the kernel log has many 0x51 lines: expandable_segments:False",
    ),
    Check("RCP023", WARN, "more draft tokens than the drafter supports", long_drafts).about(
        detects="DeepSeek-V4 with speculation `dspark` and more than 5 tokens.",
        why="its drafter works in blocks of 5 (dspark_block_size; the model card's 7 is wrong); beyond it about "
        "4 % of the drafts are accepted, and serving is slower than without.",
        cause="about 4 % of the drafts are accepted, and serving is slower than without",
        fix="5 at most",
    ),
    Check("RCP024", OVERRIDE, "n-gram speculation corrupts recurrent-state models", ngram_on_state).about(
        detects="speculation `ngram` on a model with GDN, KDA or Mamba layers.",
        why="a draft that is rejected is rolled back in the KV cache, but not in the state: the text is "
        "corrupted, without an error. Seen with Qwen3.6 on vLLM.",
        cause="a rejected draft is not taken back out of the state, and no error shows it",
        fix="speculation.method: mtp, or no speculation",
    ),
    Check("RCP025", WARN, "mmap doubles the model in unified memory", mapped_model).about(
        detects="llama.cpp with layers on the GPU and `mmap`, or `load-mode: mmap`.",
        why="the page cache of the file and the buffers of the GPU are the same memory, so the model counts twice.",
        cause="the file's page cache and the GPU's buffers are the same memory",
        fix="remove the flag",
        see=("https://github.com/ggml-org/llama.cpp/tree/master/tools/server",),
    ),
    Check("RCP026", WARN, "repetition penalty with speculative decoding", repetition_penalty).about(
        detects="vLLM with speculation `dspark` or `mtp` and a repetition_penalty in `override-generation-config`.",
        why="the penalty's path through the drafts ends with an illegal memory access, and the rank with it.",
        cause="its path through the drafts ended with an illegal memory access for one owner",
        fix="remove it from the flag, and ask clients not to send one",
        status="preview",
    ),
    Check("RCP027", WARN, "draft experts cannot run on Marlin", marlin_drafts).about(
        detects="vLLM with `moe-backend: marlin`, speculation `mtp` and no `moe_backend` of its own for the drafts.",
        why="the layers that draft are not quantized, and Marlin takes quantized experts only: the start ends "
        "while the drafter is built.",
        cause="they are not quantized, and Marlin takes quantized experts only",
        fix="speculation.options: {moe_backend: triton}",
        see=("https://github.com/vllm-project/recipes",),
    ),
    Check("RCP029", INFO, "tensor or expert parallelism (disputed)", experts_split).about(
        detects="MiniMax-M2 over several nodes by tensor parallelism, with or without expert parallelism.",
        why="two sides. One owner expects expert parallelism to send less between two nodes, for about 10 of 230 "
        "billion parameters work on a token. Other side: spark-vllm-docker's recipe for the same model says "
        "not to switch it on, because it loads the nodes unevenly. Nobody publishes both figures.",
        cause="one owner expects less traffic of expert parallelism; a recipe for the same model states that it loads "
        "unevenly",
        fix="measure both; `sparkwright plan` lists every split with what it costs",
        see=(
            "https://al-engr.com/minimax-sglang-debug.html",
            "https://github.com/eugr/spark-vllm-docker/blob/main/recipes/minimax-m2.7-nvfp4.yaml",
        ),
    ),
    Check("RCP030", INFO, "TensorRT-LLM memory fraction (disputed)", trtllm_fraction).about(
        detects="TensorRT-LLM over several nodes with serving.memory_fraction over 0.4, or none (its own default is "
        "0.9).",
        why="two sides. NVIDIA's playbook gives 0.9 of what is free after loading to the KV cache. Other side: "
        "an owner of two nodes serves with 0.4 and one sequence, for page cache and bursts need the same "
        "memory.",
        cause="NVIDIA's playbook gives 0.9 to the KV cache; an owner of two nodes serves with 0.4 and one sequence",
        fix="serving.memory_fraction: 0.4 to begin with",
        see=(
            "https://github.com/NVIDIA/dgx-spark-playbooks/tree/main/nvidia/trt-llm",
            "https://github.com/chenboju/dgx-spark-serving/tree/main/trtllm",
        ),
    ),
)
