"""The cache of each kind of layer on one rank, checked against bytes a token that were measured or that engines' code
gives."""

from dataclasses import replace
from typing import Any

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.engines.flag_data import read_data, versions
from sparkwright.planner.kv_layout import layers
from sparkwright.planner.kv_numbers import is_known_dtype
from unit.for_each import for_each
from unit.planner.kv_samples import model_shape, recipe

V4 = model_shape("deepseek-v4-flash")
QWEN8, MIMO, GEMMA_E4B = model_shape("qwen3-8b"), model_shape("mimo-v2.5"), model_shape("gemma-4-e4b")
NEMOTRON, QWEN36 = model_shape("nemotron-3-super"), model_shape("qwen3.6-35b-a3b")
FULL, WINDOW, MLA, STATE = CacheKind.FULL, CacheKind.WINDOW, CacheKind.MLA, CacheKind.STATE


def cached(model: ModelShape, **more: Any) -> tuple[CacheLayers, ...]:
    found = layers(recipe(32768, **more), model)
    assert isinstance(found, tuple), found
    return found


def growing(model: ModelShape, **more: Any) -> float:
    """Bytes a token that do not stop growing."""
    kinds = (kind for kind in cached(model, **more) if kind.kind not in (WINDOW, STATE))
    return sum(kind.layers * kind.row / kind.ratio for kind in kinds)


# Bytes a token and rank: of the engines' own lines where there are any.
GROWING: dict[str, tuple[str, dict[str, Any], float]] = {
    "MiniMax-M2.7 over two ranks": ("minimax-m2.7-nvfp4", {"tp": 2, "kv": "bf16"}, 126976),
    "30b-a3b, FP8": ("qwen3-30b-a3b", {"kv": "fp8"}, 49152),
    "GLM-5.2 with its MTP layer": ("glm-5.2", {"kv": "fp8_ds_mla", "tp": 8, "draft": ("mtp", 1)}, 54728),
    "the same, asked for FP8": ("glm-5.2", {"kv": "fp8", "draft": ("mtp", 1)}, 54728),
    "GLM-5.3, pooled index": ("glm-5.3-flash", {"kv": "fp8"}, 11 * (512 + 33)),
    "MiMo-V2.5 over two ranks": ("mimo-v2.5", {"kv": "nvfp4", "tp": 2}, 3240),
    "DeepSeek V4": ("deepseek-v4-flash", {"kv": "fp8", "tp": 2}, 3850.25),
    "DeepSeek V4, index of MXFP4": (
        "deepseek-v4-flash", {"attention_config": {"indexer_kv_dtype": "mxfp4"}}, 21 * (146 + 17) + 20 * 4.5625),
    "MiniMax-M3, plain index": ("minimax-m3", {"kv": "fp8", "tp": 4}, 57 * (256 + 256) + 3 * 256),
    "MiniMax-M3, DSpark without one": (
        "minimax-m3", {"kv": "fp8", "tp": 4, "draft": ("dspark", 5)}, 57 * (256 + 256) + 6 * 256),
    "EAGLE's one layer": ("qwen3-8b", {"draft": ("eagle3", 3)}, 37 * 4096),
    "Qwen3.6": ("qwen3.6-35b-a3b", {"kv": "bf16"}, 20480),
    "Qwen3.6 with its MTP layer": ("qwen3.6-35b-a3b", {"kv": "fp8", "draft": ("mtp", 3)}, 11264),
    "Nemotron, as the checkpoint wants it": ("nemotron-3-super", {}, 4096),
    "MLA": ("dsv2-lite", {"tp": 8}, 27 * 1152),
    "gpt-oss": ("gpt-oss-120b", {"kv": "auto"}, 36864),
    "scales of each head": ("qwen3-8b", {"kv": "int4_per_token_head"}, 36 * 8 * (128 + 8)),
    "TurboQuant, FP8 keys": ("qwen3-8b", {"kv": "turboquant_k8v4"}, 32 * 8 * (128 + 64 + 4) + 4 * 4096),
    "TurboQuant, 3 bits": ("qwen3-8b", {"kv": "turboquant_3bit_nc"}, 32 * 8 * (48 + 2 + 48 + 4) + 4 * 4096),
    "UltraQuant": ("qwen3-8b", {"kv": "ultraquant_4bit"}, 32 * 8 * 136 + 4 * 4096),  # format.py: 136 B of 128
    "Octave": ("qwen3-8b", {"kv": "octave_k3v4"}, 36 * 8 * 136),
    "Octave, compact": ("qwen3-8b", {"kv": "octave_k3v3_compact"}, 36 * 8 * 100),
    "NVFP4 of two scales": ("qwen3-8b", {"kv": "nvfp4_4over6"}, 36 * 8 * 144),
}  # fmt: skip


@for_each("model, how, expected", GROWING.values(), ids=GROWING)
def test_bytes_a_token(model: str, how: dict[str, Any], expected: float) -> None:
    """Guards the part of the cache that grows with the context."""
    assert growing(model_shape(model), **how) == expected


@for_each("name", ["vllm", "sglang"])
def test_the_newest_release_has_no_type_of_unknown_width(name: str) -> None:
    """Each value that the engine's option takes, in the newest version whose options are known, has a width."""
    data = read_data(name, versions(name)[-1])
    choices = [
        str(choice) for choice in (*data.options["kv-cache-dtype"].choices, *data.options["kv-cache-dtype"].known)
    ]
    assert len(choices) >= 8 and [choice for choice in choices if not is_known_dtype(choice)] == []


def test_an_option_with_dots() -> None:
    """Guards the other spelling of the indexer's type, and that another type is none."""
    asked = (("use_fp4_indexer_cache", True), ("indexer_kv_dtype", "mxfp4"), ("indexer_kv_dtype", "fp8"))
    rows = [growing(V4, **{f"attention_config.{name}": value}) for name, value in asked]
    assert rows == [3514.25, 3514.25, 3850.25]


def test_fewer_kv_heads_than_ranks() -> None:
    """Guards that a rank keeps at least one KV head: two heads are no smaller on four ranks than on two."""
    halved = growing(QWEN36, tp=2)
    assert (halved, growing(QWEN36, tp=4)) == (growing(QWEN36) / 2, halved)


def test_a_stage_keeps_its_own_layers() -> None:
    """Guards pipelines: the fullest stage's layers, rounded up."""
    assert [kind.layers for kind in cached(QWEN8, pp=3)] == [12]
    assert [kind.layers for kind in cached(model_shape("minimax-m2.7-nvfp4"), pp=4)] == [16]


@for_each("model, more, size", [
    (NEMOTRON, {}, 10240 * 3 * 2 + 128 * 64 * 128 * 4),
    (NEMOTRON, {"draft": ("mtp", 3)}, 8432 * 512),
    (QWEN36, {"draft": ("dflash", 15)}, 1168 * 2048),
    (QWEN36, {"tp": 2}, 4096 * 3 * 2 + 16 * 128 * 128 * 4),
    (QWEN36, {"mamba_ssm_cache_dtype": "bfloat16"}, 8192 * 3 * 2 + 32 * 128 * 128 * 2),
    (replace(QWEN36, state_format=""), {}, 8192 * 3 * 2 + 32 * 128 * 128 * 2),
    (model_shape("kimi-linear-48b"), {}, 12288 * 3 * 2 + 32 * 128 * 128 * 4),
])  # fmt: skip
def test_states(model: ModelShape, more: dict[str, Any], size: int) -> None:
    """Guards a sequence's state: last inputs of the convolution, also of drafted tokens, and a matrix of its type."""
    assert [kind.state for kind in cached(model, **more) if kind.kind is STATE] == [size]


def test_convolutions_next_to_attention() -> None:
    """Guards Inkling's windows of four tokens: 1,280 numbers a head, rounded up; SGLang keeps a state instead."""
    inkling = model_shape("inkling-small")
    few = cached(inkling, tp=2)[2]
    assert (few.kind, few.layers, few.row, few.window, few.block) == (WINDOW, 42, 4 * 2048 * 2, 4, 4)
    assert [k.state for k in cached(inkling, engine="sglang") if k.kind is STATE] == [3 * 10240 * 2]


def test_drafted_layers_are_windows_where_the_model_has_them() -> None:
    """Guards MiMo's MTP layer, which keeps a window like most of the model."""
    assert [(kind.kind, kind.layers) for kind in cached(MIMO, draft=("mtp", 1))] == [(FULL, 9), (WINDOW, 40)]


def test_layers_without_a_cache_of_their_own() -> None:
    """Guards Gemma's last 18 of 42 layers, three of them of full attention, which read the cache of others."""
    full, window = cached(GEMMA_E4B)
    assert (GEMMA_E4B.shared_kv_layers, GEMMA_E4B.shared_full_layers) == (18, 3)
    assert (full.layers, window.layers) == (7 - 3, 35 - 15)


def test_a_draft_model_of_its_own_is_assumed() -> None:
    """Guards that what nobody knows is marked as assumed."""
    assert "assumed 8 layers" in cached(QWEN36, draft=("dflash", 15))[1].why
    assert "assumed a window of 2048" in cached(model_shape("glm-5.3-flash"), draft=("dflash2", 7))[1].why
    named = cached(model_shape("glm-5.3-flash"), draft=("dflash", 7, {"model": "org/GLM-5.3-Flash-DFlash2-MXFP8"}))
    assert "assumed a window of 2048" in named[1].why
    assert (
        "assumed 5 layers"
        in cached(model_shape("glm-5.3-flash"), draft=("dflash", 7, {"model": "org/GLM-DFlash"}))[1].why
    )
    assert cached(QWEN36, draft=("ngram", 0)) == cached(QWEN36)


def test_compressors_keep_what_open_groups_need() -> None:
    """Guards DeepSeek V4's small windows, which take more of the pool than the compressed entries."""
    windows = [(k.layers, k.row, k.window, k.block) for k in cached(V4) if k.kind is WINDOW]
    assert windows == [(21, 8192, 8, 4), (21, 2048, 8, 4), (20, 4096, 128, 8), (43, 584, 128, 64)]
    drafting = [k.layers for k in cached(V4, draft=("dspark", 5)) if k.row == 584 and k.window]
    assert drafting == [46]


@for_each("model, kv, why", [
    (QWEN8, "turboquant_4bit", "nobody here knows the width of KV type turboquant_4bit"),
    (model_shape("deepseek-v4.1-flash"), "", "its pages are not known"),
    (replace(QWEN36, state_matrix=0, state_conv=0), "", "the size of the state layers' states is not known"),
    (replace(V4, index_dim=0), "", "the width of the indexer's rows is not known"),
    (replace(model_shape("glm-5.2"), index_dim=0), "", "the width of the indexer's rows is not known"),
    (replace(MIMO, window=0), "", "the window of the sliding-window layers is not known"),
    (replace(QWEN8, head_dim=0), "", "the width of an attention head is not known"),
    (replace(QWEN8, layers=0), "", "no layer is known to keep"),
])  # fmt: skip
def test_unknown_is_reported(model: ModelShape, kv: str, why: str) -> None:
    """Guards that a cache which cannot be counted is not guessed."""
    found = layers(recipe(kv=kv), model)
    assert isinstance(found, Unknown)
    assert why in found.why
