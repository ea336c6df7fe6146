"""Names of tensors -> how a split shares them out, in the families' own spelling."""

from dataclasses import replace

import pytest

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.planner.parts import Spread, Weights
from sparkwright.planner.weights import tensor_parts
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape

DENSE = model_shape("qwen3-8b")
DEEPSEEK = replace(model_shape("dsv2-lite"), mtp_layers=1)


def spread(name: str, of: object = DENSE, drafts: bool = False) -> tuple[Weights, ...]:
    return tensor_parts((TensorGroup(name, "BF16", 2800, 1),), of, drafts)  # type: ignore[arg-type]


@for_each(
    "name, wanted",
    [
        ("model.layers.#.self_attn.q_proj.weight", Spread.HEADS),
        ("model.layers.#.self_attn.k_proj.weight_scale_inv", Spread.KV),
        ("model.layers.#.self_attn.v_proj.bias", Spread.KV),
        ("model.layers.#.self_attn.kv_a_proj_with_mqa.weight", Spread.COPY),
        ("model.layers.#.self_attn.kv_b_proj.weight", Spread.HEADS),
        ("model.layers.#.self_attn.q_a_layernorm.weight", Spread.COPY),
        ("model.layers.#.self_attn.indexer.wq_b.weight", Spread.COPY),
        ("layers.#.attn.compressor.wkv.weight", Spread.COPY),
        ("layers.#.attn.wq_a.scale", Spread.COPY),
        ("model.layers.#.mlp.gate.weight", Spread.COPY),
        ("model.layers.#.mlp.gate_proj.weight", Spread.HEADS),
        ("model.layers.#.mlp.experts.#.gate_proj.weight_packed", Spread.EXPERTS),
        ("model.layers.#.block_sparse_moe.experts.#.w1.weight_scale", Spread.EXPERTS),
        ("model.layers.#.mlp.experts.gate_up_proj_blocks", Spread.EXPERTS),
        ("model.layers.#.mlp.shared_experts.down_proj.weight", Spread.HEADS),
        ("model.layers.#.mlp.shared_expert.up_proj.weight", Spread.HEADS),
        ("model.layers.#.mlp.router.weight", Spread.COPY),
        ("model.norm.weight", Spread.COPY),
        ("lm_head.weight", Spread.HEADS),
        ("blk.#.ffn_gate_exps.weight", Spread.EXPERTS),
        ("model.layers.#.linear_attn.in_proj_qkvz.weight", Spread.HEADS),
    ],
)
def test_spread_of_a_name(name: str, wanted: Spread) -> None:
    """Guards one name of each kind of layer; scales follow their weights."""
    (part,) = spread(name)
    assert (part.spread, part.bytes) == (wanted, 2800)


def test_fused_projections_are_cut_in_two() -> None:
    """Guards that keys and values of a fused projection count as such: 16 of 48 heads of Qwen3-8B."""
    keys, queries = spread("model.layers.#.self_attn.qkv_proj.weight")
    assert (keys.spread, queries.spread) == (Spread.KV, Spread.HEADS)
    assert (keys.bytes, queries.bytes) == pytest.approx((2800 / 3, 2800 * 2 / 3))


def test_ends_of_a_pipeline() -> None:
    """Guards that only layers are shared out over stages, and that an embedding is not read for a token."""
    (layer,), (embedding,) = spread("model.layers.#.mlp.up_proj.weight"), spread("model.embed_tokens.weight")
    assert (layer.ends, layer.idle, embedding.ends, embedding.idle) == (False, False, True, True)


@pytest.mark.parametrize(
    "name", ["mtp.layers.#.mlp.up_proj.weight", "model.layers.#.eh_proj.weight", "nextn.fc.weight"]
)
def test_draft_tensors_without_speculation(name: str) -> None:
    """Guards that draft tensors are left out as engines leave them out, and count when they are expected."""
    assert spread(name, DEEPSEEK) == ()
    assert [part.bytes for part in spread(name, DEEPSEEK, True)] == [2800]


def test_draft_layers_numbered_like_the_others() -> None:
    """Guards DeepSeek-V3's way: of 28 layers in the files one drafts, and its embedding is the model's own."""
    groups = (
        TensorGroup("model.layers.#.mlp.up_proj.weight", "BF16", 2800, 28),
        TensorGroup("model.layers.#.eh_proj.weight", "BF16", 50, 1),
        TensorGroup("model.layers.#.shared_head.head.weight", "BF16", 999, 1),
    )
    assert [part.bytes for part in tensor_parts(groups, DEEPSEEK, False)] == [2700]
    assert [part.bytes for part in tensor_parts(groups, DEEPSEEK, True)] == [2800, 50]


@pytest.mark.parametrize(
    "name", ["visual.blocks.#.mlp.fc#.weight", "model.vision_tower.encoder.layers.#.q_proj.weight"]
)
def test_encoders(name: str) -> None:
    """Guards that an encoder is split or copied as the engine is configured, and lies on one stage."""
    group = (TensorGroup(name, "BF16", 2800, 1),)
    split, whole = (tensor_parts(group, DENSE, False, how)[0] for how in (Spread.HEADS, Spread.COPY))
    assert (split.spread, whole.spread, split.ends) == (Spread.HEADS, Spread.COPY, True)
