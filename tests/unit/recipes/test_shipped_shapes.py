"""Dimensions in shipped recipes: those of the model's own config.json, and enough to count its KV cache and speed."""

from dataclasses import asdict

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.verdict import Load
from sparkwright.engines.catalog import traits
from sparkwright.planner.kv_cache import capacity
from sparkwright.planner.parts import main, settled
from sparkwright.planner.speed import estimate_speed
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape
from unit.recipes.test_shipped import NAMES, TINY, VARIANTS, shipped

GIB = 1 << 30
# What an export may change: how weights are written.
WRITTEN = ("quantization", "format", "group", "rows", "expert_format", "expert_group", "activations")
# Recipe -> (its model's config, fields that differ and why).
ASIS: tuple[str, ...] = ()
CONFIGS = {
    "deepseek-v4-flash": ("deepseek-v4-flash", ASIS),
    "deepseek-v4-flash-0731": ("deepseek-v4-flash", ("draft_architecture",)),  # the release has DSpark in place of MTP
    "deepseek-v4-flash-built": ("deepseek-v4-flash", ASIS),
    "deepseek-v4-flash-sglang": ("deepseek-v4-flash", ASIS),
    "deepseek-v4.1-flash": ("deepseek-v4.1-flash", WRITTEN),
    "gemma-4-26b-a4b": ("gemma-4-26b-a4b", ASIS),
    "glm-5.3-flash": ("glm-5.3-flash", WRITTEN),
    "gpt-oss-120b": ("gpt-oss-120b", ASIS),
    "inkling-small": ("inkling-small", WRITTEN),
    "minimax-m2.7-fp8-sglang": ("minimax-m2.7-nvfp4", WRITTEN),
    "minimax-m2.7-nvfp4": ("minimax-m2.7-nvfp4", ASIS),
    "minimax-m3": ("minimax-m3", (*WRITTEN, "mtp_layers", "draft_architecture")),  # no export has its MTP layers
    "nemotron-3-super-120b": ("nemotron-3-super", ASIS),
    # GGUF files have no draft layers and other names for architectures; llama.cpp is told the cache's type.
    "nemotron-3-super-llama-cpp-rpc": (
        "nemotron-3-super",
        (*WRITTEN, "mtp_layers", "draft_architecture", "kv_format", "architecture", "intermediate"),
    ),
    "qwen3.6-35b-a3b": ("qwen3.6-35b-a3b", WRITTEN),
    "qwen3.8-flash-next": ("qwen3.8-flash-next", WRITTEN),
    "qwen3.8-flash-next-single": ("qwen3.8-flash-next", (*WRITTEN, "table_format")),  # RadixArk writes the table in FP8
}
# Engines whose pools for such a model nobody has modelled.
NOT_COUNTED = ("deepseek-v4-flash-sglang", "deepseek-v4.1-flash", "deepseek-v4.1-flash-exl3")
REAL = [p for p in VARIANTS if p.values[0].name not in TINY]


@for_each("name", CONFIGS)
def test_a_shape_is_that_of_the_models_config(name: str) -> None:
    """A key that was forgotten or mistyped would make every figure of the plan wrong without a word."""
    config, other = CONFIGS[name]
    mine, file = (asdict(one) for one in (_shape(shipped(name)), model_shape(config)))
    assert {key: value for key, value in mine.items() if key not in other} == {
        key: value for key, value in file.items() if key not in other
    }
    # An exception that is none any more goes; of formats only some change.
    assert all(mine[key] != file[key] for key in other if key not in WRITTEN)


@for_each("recipe", REAL)
def test_kv_tokens_and_speed_can_be_counted(recipe: Recipe) -> None:
    """A plan of a shipped recipe reports how much context fits and how fast it is, or why not."""
    found, model = capacity(recipe, _shape(recipe), 10 * GIB), _shape(recipe)
    fast = estimate_speed(recipe, model, recipe.model.size - recipe.model.on_disk, Load(prompt=2048))
    if traits(recipe).opaque:
        assert "is not known here" in fast.decode.why[0] and not fast.decode.known
        return
    assert fast.decode.known and fast.prefill.known
    assert bool(found.unknown) == (found.tokens == 0) == (recipe.name in NOT_COUNTED)


@for_each("recipe", [p for p in REAL if p.values[0].model.size])
def test_dimensions_explain_the_published_size(recipe: Recipe) -> None:
    """A wrong width or count of layers shows here, where no config is at hand; draft layers are the rest."""
    published = recipe.model.size - recipe.model.on_disk
    shape = settled(_shape(recipe), published, recipe.model.on_disk)
    assert 0.9 < published / sum(part.bytes for part in main(shape)) < 1.15


def test_every_real_recipe_has_a_shape() -> None:
    """Only the tiny ones serve whatever is there."""
    assert [name for name in NAMES if shipped(name).model.shape is None and name not in TINY] == []


def _shape(recipe: Recipe) -> ModelShape:
    assert recipe.model.shape is not None, recipe.name
    return recipe.model.shape
