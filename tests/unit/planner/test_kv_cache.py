"""The cache of every engine: what must hold for any model, pool and version."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.planner.kv_cache import capacity, needed, start
from sparkwright.planner.kv_layout import layers
from unit.for_each import for_each
from unit.planner.kv_samples import CONFIGS, model_shape, recipe

MODELS = {path.name.removesuffix(".config.json"): path for path in sorted(CONFIGS.glob("*.config.json"))}
COUNTED = sorted(MODELS.keys() - {"deepseek-v4.1-flash"})
VERSIONS = ("0.20.2", "0.21.0", "0.24.0", "0.27.1", "0.33.0")
ENGINES = ("vllm", "vllm-ray", "twin", "sglang", "trtllm", "llama-cpp")
RUNS = st.builds(
    recipe,
    st.integers(1, 1 << 20),
    st.sampled_from(VERSIONS),
    st.sampled_from(ENGINES),
    tp=st.sampled_from((1, 2, 4, 8)),
    pp=st.sampled_from((1, 2)),
    kv=st.sampled_from(("", "auto", "bf16", "fp8", "nvfp4")),
    batched=st.integers(1, 65536),
    draft=st.sampled_from((("", 0), ("mtp", 3), ("dflash", 15), ("eagle3", 2), ("dspark", 5))),
)


@given(RUNS, st.sampled_from(COUNTED), st.integers(0, 200 * GIB), st.integers(0, 10 * GIB))
def test_more_bytes_never_hold_fewer_tokens(run: Recipe, model: str, size: int, more: int) -> None:
    """Guards search over limits: a pool that grows does not shrink."""
    small, large = (capacity(run, model_shape(model), s) for s in (size, size + more))
    assert small.tokens <= large.tokens
    assert small.reported <= large.reported
    assert small.sequences <= large.sequences


@given(RUNS, st.sampled_from([name for name in COUNTED if not model_shape(name).state_kind]))
def test_more_ranks_never_need_more_each(run: Recipe, model: str) -> None:
    """Guards tp: a rank of twice as many keeps at most as much. (Blocks that must hold a state round up unevenly.)"""
    wider = replace(run, parallelism=replace(run.parallelism, tp=run.parallelism.tp * 2))
    one, two = needed(run, model_shape(model)), needed(wider, model_shape(model))
    if isinstance(one, int) and isinstance(two, int):
        assert two <= one


@given(RUNS, st.sampled_from(COUNTED))
def test_a_pool_of_what_one_context_needs_holds_it(run: Recipe, model: str) -> None:
    """Guards that need and capacity are the same arithmetic: the engine would start with just that."""
    size = needed(run, model_shape(model))
    found = capacity(run, model_shape(model), size + 1 if isinstance(size, int) else 0)
    if isinstance(size, int) and not found.unknown:
        assert found.reported > run.serving.context - (32 if run.engine.name == "trtllm" else 2)


NUMBERS = {f.name: st.integers(0, 300) for f in fields(ModelShape) if f.type == "int" or f.type is int}


@given(RUNS, st.builds(ModelShape, **NUMBERS), st.integers(-GIB, GIB))
def test_any_shape_gets_an_answer(run: Recipe, model: ModelShape, size: int) -> None:
    """Guards that no config, however odd, ends the plan: a figure or a reason."""
    found = capacity(run, model, size)
    assert found.unknown or found.block > 0
    assert isinstance(needed(run, model), (int, Unknown))


@pytest.mark.parametrize("engine", ["trtllm", "llama-cpp"])
def test_plain_engines_count_rows(engine: str) -> None:
    """Guards the two engines without an arithmetic of groups; TensorRT-LLM's blocks hold 32 tokens."""
    run, each = recipe(1000, "1", engine), 36 * 4096 * 1000
    found = capacity(run, model_shape("qwen3-8b"), 3 * each + each // 100)
    assert (found.tokens, found.block, found.per_sequence) == (
        (3008, 32, each) if engine == "trtllm" else (3010, 1, each))  # fmt: skip
    assert needed(run, model_shape("qwen3-8b"), 2) == 2 * each


def test_llama_cpp_writes_keys_in_blocks_of_its_own() -> None:
    """Guards q8_0: 34 bytes for 32 numbers."""
    assert needed(recipe(1000, "1", "llama-cpp", kv="q8_0"), model_shape("qwen3-8b")) == 36 * 2048 * 34 // 32 * 1000


def test_a_context_that_nobody_gives() -> None:
    """Guards that the model's own length counts where the recipe has none, and that without either nothing is
    reported."""
    model = model_shape("qwen3-8b")
    assert needed(recipe(), model) == needed(recipe(model.positions), model)
    nowhere = replace(model, positions=0)
    assert "the length of a context" in capacity(recipe(), nowhere, GIB).unknown
    assert isinstance(needed(recipe(), nowhere), Unknown)


def test_every_model_is_counted() -> None:
    """Guards that a family whose config can be read has a cache that can be counted, or a reason."""
    said = {name: capacity(recipe(8192), model_shape(name), 60 * GIB) for name in MODELS}
    assert {name for name, found in said.items() if found.unknown} <= {"deepseek-v4.1-flash", "step-3.5-flash"}
    assert all(isinstance(path, Path) for path in MODELS.values())


@pytest.mark.parametrize(("model", "drafts"), [("glm-5.3-flash", "dflash"), ("qwen3-8b", "draft_model")])
def test_a_draft_model_that_nothing_describes_has_a_wide_range(model: str, drafts: str) -> None:
    """Guards that a draft never counts as zero, nor as known: from nothing to several times what is assumed."""
    found, run = model_shape(model), recipe(262144, draft=(drafts, 4))
    least, most = needed(recipe(262144), found), needed(run, found)
    held, alone = capacity(run, found, 40 * GIB), capacity(recipe(262144), found, 40 * GIB)
    assert held.low is not None and held.high is not None and held.low < held.tokens < held.high
    assert held.high <= alone.tokens and held.low < 0.8 * held.tokens
    assert isinstance(least, int) and isinstance(most, int) and 0 < least <= most


def test_an_unknown_draft_may_keep_the_whole_context() -> None:
    """Guards against "fits": a start failed for 16.4 GiB of one context where the assumed window takes 5.5."""
    glm = model_shape("glm-5.3-flash")
    run = recipe(800000, "0.30.0", kv="fp8", tp=2, batched=2048, draft=("dflash2", 7))
    assert [round(size / GIB, 1) for size in start(run, glm) or ()] == [5.5, 12.9]
    held = capacity(run, glm, 16 * GIB)
    assert held.low is not None and held.low < held.tokens / 2
    told = replace(run, speculation=replace(run.speculation, draft=model_shape("qwen3-8b")))
    known = start(told, glm)
    assert known is not None and known[0] == known[1]


def test_a_draft_models_own_dimensions_count() -> None:
    """Guards a drafter with a config: its layers, heads and windows are its own, and nothing is assumed."""
    draft = ModelShape(3, 16, 4, hidden=1024, head_dim=64, vocab=1000, intermediate=2048, format="bf16")
    run = recipe(4096, draft=("draft_model", 4))
    told = replace(run, speculation=replace(run.speculation, draft=draft))
    own, alone = layers(told, model_shape("qwen3-8b")), layers(recipe(4096), model_shape("qwen3-8b"))
    assert isinstance(own, tuple) and isinstance(alone, tuple)
    assert [(kind.layers, kind.row) for kind in own[len(alone) :]] == [(3, 4 * 128 * 2)]
    assert capacity(told, model_shape("qwen3-8b"), GIB).low is None


def test_what_is_assumed_of_a_draft_model_is_reported() -> None:
    """Guards that the arithmetic of a pool names the assumption that it rests on."""
    assert "assumed 8 layers" in capacity(recipe(4096, draft=("dflash", 4)), model_shape("qwen3-8b"), GIB).doubts[-1]


@for_each(
    "version, extra, exact",
    [("0.33.0", (), True), ("0.33.0", ("some-option",), False), ("nightly", (), False), ("", (), False)],
)
def test_tokens_have_no_width_only_where_the_build_is_known(version: str, extra: tuple[str, ...], exact: bool) -> None:
    """Guards forks and nightlies: a figure without a range is one that was checked against that very version."""
    made = replace(recipe(8192), engine=replace(recipe().engine, version=version, extra_flags=extra))
    found = capacity(made, model_shape("qwen3-8b"), 10 * GIB)
    assert (found.low is None) is exact and bool(found.doubts) is not exact
    assert exact or (found.low or 0) < found.tokens < (found.high or 0)


def test_drafts_may_keep_a_second_state() -> None:
    """Guards hybrid models with MTP: published boots held about one state less for each request."""
    hybrid = replace(model_shape("qwen3.6-35b-a3b"), mtp_layers=1)
    plain, drafting = (
        capacity(recipe(8192, "0.33.0", draft=draft), hybrid, 10 * GIB) for draft in (("", 0), ("mtp", 3))
    )
    assert plain.low is None and drafting.low is not None
    assert 0.5 * drafting.tokens < drafting.low < drafting.tokens == drafting.high


@pytest.mark.parametrize("auto", ["auto", -1])
def test_auto_context_is_the_longest_that_fits(auto: str | int) -> None:
    """vLLM shortens `auto` to what one sequence of fits, and never exceeds the model's own length."""
    model, size = model_shape("qwen3-8b"), 2 * GIB
    found = capacity(recipe(max_model_len=auto), model, size)
    longer = needed(recipe(context=found.context + 1), model)
    assert 0 < found.context < model.positions and found.reported == found.context
    assert isinstance(longer, int) and longer > size
    assert capacity(recipe(max_model_len=auto), model, 100 * GIB).context == model.positions
    assert capacity(recipe(), model, size).context == 0
