"""The knobs: steps from the mildest on, nothing that the engine or the model refuses."""

from dataclasses import replace
from itertools import pairwise

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Parallelism, Recipe, Speculation
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Variant
from sparkwright.planner.knobs import Knob, contexts, eight_bits, list_knobs, setting, tables_elsewhere
from sparkwright.planner.remedies import changed, written, yaml_lines
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape
from unit.planner.toy import RECIPE, SHAPE, TWO_NODES, WORLD, recipe


def find_knob(given: Recipe, kind: str) -> Knob | None:
    return next((knob for knob in list_knobs(given, WORLD) if knob.kind == kind), None)


def test_steps_become_harder() -> None:
    """Bisection and the order of remedies rest on it; the first steps are near the recipe's own values."""
    for knob in list_knobs(RECIPE, WORLD):
        assert all(one.loss < other.loss for one, other in pairwise(knob.steps)), knob.kind
        assert all(step.loss > 0 for step in knob.steps)


def test_contexts_are_friendly() -> None:
    """Multiples of 4,096, below 32,768 of 1,024; a model's odd limit is rounded down."""
    assert contexts(40000) == (36864, 32768, *range(31744, 2047, -1024))
    assert contexts(0) == ()


def test_batched_tokens_stay_above_the_sequences() -> None:
    """vLLM ends at start otherwise."""
    knob = find_knob(recipe(sequences=2048, batched_tokens=8192), "batched tokens")
    assert knob and [step.variant.keys["serving.batched_tokens"] for step in knob.steps] == [4096, 2048]


@for_each(
    "now, types, name",
    [("", ("auto", "fp8"), "fp8"), ("bfloat16", ("fp8_e4m3",), "fp8_e4m3"), ("f16", ("q8_0",), "q8_0"),
     ("fp8", ("fp8",), ""), ("fp8_ds_mla", ("fp8",), ""), ("", (), ""), ("nvfp4", ("fp8",), "")],
)  # fmt: skip
def test_only_a_wider_cache_can_be_narrowed(now: str, types: tuple[str, ...], name: str) -> None:
    """The cache is narrowed to a type that this engine's version has."""
    assert eight_bits(recipe(kv_dtype=now), types) == name


def test_no_graphs_only_where_there_are_some() -> None:
    """Each engine has its own option; one that runs eagerly already has none to turn."""
    knob = find_knob(RECIPE, "CUDA graphs")
    assert knob and written(knob.steps[0].variant) == "flags.enforce-eager: true"
    assert find_knob(replace(RECIPE, flags={"--enforce_eager": True}), "CUDA graphs") is None
    assert find_knob(replace(RECIPE, engine=EngineChoice("llama-cpp", "b1")), "CUDA graphs") is None


def test_more_nodes_split_as_the_model_allows() -> None:
    """Tensor parallelism grows where heads divide; a split that is refused is not proposed."""
    assert node_steps(TWO_NODES) == [{"nodes": 4, "parallelism.tp": 4}, {"nodes": 8, "parallelism.tp": 8}]
    few = replace(SHAPE, heads=6, kv_heads=2)
    assert node_steps(TWO_NODES, few)[0] == {"nodes": 4, "parallelism.pp": 2}
    drafts = replace(TWO_NODES, speculation=Speculation("mtp", 1))
    assert node_steps(drafts, few)[0] == {"nodes": 4, "parallelism.dp": 2}
    assert node_steps(replace(RECIPE, nodes=8, parallelism=Parallelism(tp=8))) == []


def test_more_nodes_name_what_the_file_has_otherwise() -> None:
    """Guards `plan --nodes 1` of a file with pp 3: tp 4 alone makes it one of twelve ranks on four nodes."""
    world = replace(WORLD, file_split=Parallelism(pp=3))
    steps = [knob.steps[0] for knob in list_knobs(RECIPE, world) if knob.kind == "nodes"]
    assert dict(steps[-1].variant.keys)["parallelism.pp"] == 1


def node_steps(given: Recipe, shape: ModelShape = SHAPE) -> list[dict[str, object]]:
    """The changes of each step."""
    found = list_knobs(given, replace(WORLD, shape=shape))
    return [dict(step.variant.keys) for knob in found if knob.kind == "nodes" for step in knob.steps]


def test_changes_are_written_as_in_a_recipe() -> None:
    """Ready to paste; a flag that was spelled in another way is replaced, and null takes one away."""
    variant = setting(context=4096, memory_fraction=0.8) + Variant((("flags.enforce-eager", True), ("nodes", 2)))
    assert list(yaml_lines(variant)) == [
        "serving:", "  context: 4096", "  memory_fraction: 0.8", "flags:", "  enforce-eager: true", "nodes: 2",
    ]  # fmt: skip
    given = replace(RECIPE, flags={"--enforce_eager": False, "other": 1})
    after = changed(given, variant)
    assert after.flags == {"other": 1, "enforce-eager": True}
    assert (after.serving.context, after.serving.memory_fraction, after.nodes) == (4096, 0.8, 2)
    assert changed(given, Variant((("flags.enforce-eager", None),))).flags == {"other": 1}
    assert given.flags == {"--enforce_eager": False, "other": 1}


def tables_of(given: Recipe, dimensions: ModelShape) -> Knob | None:
    world = replace(WORLD, shape=dimensions)
    return next((knob for knob in list_knobs(given, world) if knob.kind == "tables"), None)


def test_tables_of_single_rows_go_to_disk() -> None:
    """Guards one node for Qwen3.8-Flash-Next: its n-gram table is 48 of 124 GiB, and one engine reads it from NVMe."""
    with_tables = replace(model_shape("qwen3-30b-a3b"), tables=51_200_000_000, table_format="fp8")
    plain = replace(RECIPE, flags={}, env={}, model=replace(RECIPE.model, size=133 * 10**9))
    own = replace(plain, engine=EngineChoice("sglang", "0.5.23"))
    knob = tables_of(own, with_tables)
    assert knob and list(knob.steps[0].variant.keys) == [
        "model.on_disk", "flags.ple-offload-embedding", "flags.ple-offload-backend",
    ]  # fmt: skip
    after = changed(own, knob.steps[0].variant)
    assert 47 * GIB <= after.model.on_disk <= 48 * GIB and after.flags["ple-offload-backend"] == "file"
    assert tables_of(after, with_tables) is None and tables_of(own, SHAPE) is None
    older = replace(own, engine=EngineChoice("sglang", "0.5.17"), flags={"enable-metrics": True})
    assert tables_of(older, with_tables) is None, "not before 0.5.20"


def test_llama_cpp_leaves_a_gguf_file_s_tables_on_the_cpu() -> None:
    """Guards one node for a GGUF file of Qwen3.8-Flash-Next, whose table llama.cpp maps from disk."""
    with_tables = replace(model_shape("qwen3-30b-a3b"), tables=51_200_000_000, quantization="gguf", format="", group=0)
    own = replace(
        RECIPE,
        flags={},
        env={},
        model=replace(RECIPE.model, size=45 * 10**9),
        engine=EngineChoice("llama-cpp", "b10380"),
    )
    knob = tables_of(own, with_tables)
    assert knob and knob.steps[0].variant.keys["flags.override-tensor"] == "per_layer_token_embd=CPU"
    # 51 of 82 billion numbers, in a file of 45 GB
    assert 24 * 10**9 < changed(own, knob.steps[0].variant).model.on_disk < 32 * 10**9
    safetensors = replace(own, engine=EngineChoice("vllm", "0.33.0"))
    other = tables_of(safetensors, with_tables)
    assert other and other.steps[0].variant.keys["engine.name"] == "llama-cpp", "the other engine reads no GGUF files"


def test_another_engine_for_the_tables_only_where_nothing_ties_to_this_one() -> None:
    """Guards a proposal that would carry options of one engine to another."""
    with_tables = replace(model_shape("qwen3-30b-a3b"), tables=51_200_000_000, table_format="fp8")
    bare = replace(RECIPE, flags={}, env={}, engine=EngineChoice("vllm", "0.33.0"))
    knob = tables_of(bare, with_tables)
    assert knob and knob.steps[0].variant.keys["engine.name"] == "sglang"
    tied = replace(bare, flags={"enforce-eager": True})
    assert tables_of(tied, with_tables) is None
    assert "sglang" in tables_elsewhere(tied, with_tables) and not tables_elsewhere(tied, SHAPE)
