"""SGLang's token pool, checked against published logs and against the rules of its pool configurator."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.units import GIB
from sparkwright.planner import kv_sglang
from sparkwright.planner.kv_cache import capacity, needed
from sparkwright.planner.kv_layout import layers
from unit.planner.kv_samples import model_shape, recipe

# Qwen2.5-1.5B: 28 layers, 2 KV heads of 128.
SMALL = ModelShape(28, 12, 2, head_dim=128, positions=32768)
QWEN36, MIMO, GLM = model_shape("qwen3.6-35b-a3b"), model_shape("mimo-v2.5"), model_shape("glm-5.2")


def tokens(model: ModelShape, size: float, context: int = 32768, **more: Any) -> int:
    return capacity(recipe(context, "0.5.10", "sglang", **more), model, int(size)).reported


@pytest.mark.parametrize(("gib", "kv", "printed"), [
    (41.6, "auto", 1557709), (41.58, "fp8_e4m3", 3113713), (41.6, "fp4_e2m1", 5537976), (3.38, "bf16", 126333),
])  # fmt: skip
def test_published_pools(gib: float, kv: str, printed: int) -> None:
    """Guards `max_total_num_tokens` of one model with four types of cache: K and V are each rounded to 0.01."""
    assert tokens(SMALL, gib * GIB, kv=kv) == pytest.approx(printed, rel=0.01 / gib)


def test_pages_are_whole() -> None:
    """Guards the page size, which rounds the pool down."""
    assert tokens(SMALL, 28672 * 1000, page_size=64) == 960
    assert tokens(SMALL, 28672 * 1000) == 1000


def test_a_pool_of_windows_next_to_the_whole() -> None:
    """Guards swa_full_tokens_ratio: 0.8 tokens of window for each token of context unless reported otherwise."""
    full, window, plain = 9 * 2560, 39 * 5120, replace(MIMO, architecture="Gemma3ForCausalLM")
    own = replace(MIMO, architecture="MiMoV2ForCausalLM")
    assert tokens(plain, (full + window) * 100) == 100, "no pool of its own for windows there"
    assert tokens(own, (full + window) * 100, disable_hybrid_swa_memory=True) == 100
    assert tokens(own, (full + 0.8 * window) * 100) == 100
    assert tokens(own, (full + 0.25 * window) * 100, swa_full_tokens_ratio=0.25) == 100


def test_layers_that_read_another_s_cache_have_rows_too() -> None:
    """Guards Gemma 4 E4B, of whose 42 layers 18 read what others keep: a GB10 printed 997,846 tokens in 79.94 GiB."""
    gemma = model_shape("gemma-4-e4b")
    assert tokens(gemma, 79.94 * GIB, kv="bf16") == pytest.approx(997846, rel=0.001)


def test_drafts_and_indexers_have_pools_of_their_own() -> None:
    """Guards what SGLang prints as KV: the model's own layers, here 78 latent rows, whatever is drafted."""
    row = 78 * 656
    assert tokens(GLM, row * 100, kv="fp8_e4m3") == tokens(GLM, row * 100, kv="fp8_e4m3", draft=("eagle", 3)) == 100
    for drafts in (("nextn", 1), ("dflash", 7), ("standalone", 3)):
        assert tokens(MIMO, GIB, draft=drafts) == tokens(MIMO, GIB)
        assert tokens(QWEN36, GIB, draft=drafts) == tokens(QWEN36, GIB)


def layer_kinds(model: ModelShape, **more: Any) -> tuple[CacheLayers, ...]:
    found = layers(recipe(32768, "0.5.10", "sglang", **more), model)
    assert isinstance(found, tuple)
    return found


def test_the_share_of_states() -> None:
    """Guards mamba_full_memory_ratio: 0.9 bytes of states for each byte of KV, or as many slots as reported.

    Without a cache of prefixes the limit on requests reports it.
    """
    usual = recipe(32768, "0.5.10", "sglang")
    assert kv_sglang.token_pool(usual, QWEN36, layer_kinds(QWEN36), 19 * GIB) == pytest.approx(10 * GIB, rel=1e-6)
    told = recipe(32768, "0.5.10", "sglang", max_mamba_cache_size=10)
    state = 30 * (8192 * 3 * 2 + 32 * 128 * 128 * 4)
    assert kv_sglang.token_pool(told, QWEN36, layer_kinds(QWEN36), GIB) == GIB - 10 * state
    assert kv_sglang.token_pool(usual, QWEN36, layer_kinds(QWEN36), -GIB) == 0
    bare = recipe(32768, "0.5.12", "sglang", sequences=10, disable_radix_cache=True)
    assert kv_sglang.token_pool(bare, QWEN36, layer_kinds(QWEN36), GIB) == GIB - 10 * state


def test_states_of_drafted_tokens() -> None:
    """Guards a recipe without a limit on requests: 0.5.12 reserved states for 48, 0.5.16 for those that fit."""

    def states(version: str, **more: Any) -> float:
        run = recipe(32768, version, "sglang", draft=("dflash2", 16), **more)
        whole, own = (sum(kind.layers * kind.row for kind in some) for some in (found, layer_kinds(QWEN36)))
        return 20 * GIB - kv_sglang.token_pool(run, QWEN36, found, 20 * GIB) * whole / own

    found = layer_kinds(QWEN36, draft=("dflash2", 16))
    state = sum(kind.layers * kind.state for kind in found)
    assert states("0.5.12") == pytest.approx(20 * GIB)  # 48 x 16 states are more than there is: nothing for KV
    slots = int((20 * GIB * 0.9 / 1.9 - 17 * state) / (state * (1 + 16 / 5)))
    assert states("0.5.17") == states("0.5.20") == pytest.approx(state * (slots + 1 + (slots // 5 + 1) * 16), rel=1e-6)
    assert states("0.5.20", sequences=2) == pytest.approx(state * (slots + 1 + 3 * 16), rel=1e-6)
    assert states("0.5.16", sequences=2, max_mamba_cache_size=20) == pytest.approx(state * (20 + 2 * 16), rel=1e-6)
    assert states("0.5.16", sequences=4, disable_radix_cache=True) == pytest.approx(state * 4 * 17, rel=1e-6)
    run = recipe(32768, "0.5.20", "sglang", draft=("dflash2", 16))
    assert kv_sglang.token_pool(run, QWEN36, layer_kinds(QWEN36), GIB // 2) == 0  # SGLang stops: no room for one state


def test_what_drafts_and_indexers_take_of_the_pool() -> None:
    """Guards GLM's share of keys and values when the indexer's rows and the draft's are kept next to them."""
    run = recipe(32768, "0.5.10", "sglang", kv="fp8", draft=("eagle", 3))
    rows = layer_kinds(GLM, kv="fp8", draft=("eagle", 3))
    index = (GLM.index_layers + 1) * 132
    expected = GIB * 78 * 656 / (79 * 656 + index)
    assert kv_sglang.token_pool(run, GLM, rows, GIB) == pytest.approx(expected, rel=1e-6)


def test_need_and_unknown() -> None:
    """Guards that a context's bytes are reported, and that compressed KV is not guessed."""
    assert needed(recipe(1000, "0.5.10", "sglang"), SMALL, 2.5) == 2500 * 28672
    v4 = model_shape("deepseek-v4-flash")
    assert isinstance(needed(recipe(1000, "0.5.10", "sglang"), v4), Unknown)
    assert "not modelled" in capacity(recipe(1000, "0.5.10", "sglang"), v4, GIB).unknown
    assert tokens(replace(SMALL, layers=27), 0) == 0
