"""The memory of a checkpoint and an engine next to the parts that a split's cost counts."""

from dataclasses import replace

import pytest

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Speculation
from sparkwright.planner.parts import (
    ENCODER,
    Spread,
    Weights,
    draft_layers,
    drafter,
    drafts,
    main,
    model_parts,
)
from sparkwright.planner.weights import rank_weights, repacked, spread_encoder, uncounted
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape, recipe

V4 = model_shape("deepseek-v4-flash")
DENSE = model_shape("qwen3-8b")


def bytes_by_name(everything: tuple[Weights, ...]) -> dict[str, float]:
    return {part.name: part.bytes for part in everything}


def test_a_plain_model_has_nothing_more() -> None:
    """Guards that dense and sparse GQA models are counted as the advisor counts them."""
    assert main(DENSE) == model_parts(DENSE)


def test_compressed_attention() -> None:
    """Guards DeepSeek-V4's own parts, which every rank holds whole: 1 GiB of compressors, indexers and streams."""
    more = [part for part in main(V4) if part not in model_parts(V4)]
    assert {part.name for part in more} >= {"compressors", "hyper-connections"}
    assert all(part.spread is Spread.COPY for part in more)


def test_windows_of_another_width() -> None:
    """Guards that window layers with heads of their own count with these: Gemma 4 has fewer, wider global heads."""
    gemma = model_shape("gemma-4-26b-a4b")
    both = sum(part.bytes for part in main(gemma) if part.name in ("attention", "keys and values"))
    alike = replace(gemma, window_head_dim=0, window_kv_heads=0, window_value_dim=0)
    assert both != sum(part.bytes for part in main(alike) if part.name in ("attention", "keys and values"))
    assert bytes_by_name(main(gemma))[ENCODER] > 0


def test_state_layers_by_what_their_convolution_sees() -> None:
    """Guards the projections of linear attention: into convolution and gate, out of the state."""
    hybrid = model_shape("qwen3.6-35b-a3b")
    numbers = hybrid.state_layers * (hybrid.state_conv_width + 2 * hybrid.state_width) * hybrid.hidden
    assert bytes_by_name(main(hybrid))["state layers"] == pytest.approx(2 * numbers)


@for_each(
    "method, options, own, other",
    [
        ("", {}, False, False),
        ("mtp", {}, True, False),
        ("dspark", {}, True, False),
        ("NEXTN", {}, True, False),
        ("eagle3", {"model": "x"}, False, True),
        ("mtp", {"model": "x"}, False, True),
        ("ngram", {}, False, False),
    ],
)
def test_who_drafts(method: str, options: dict[str, str], own: bool, other: bool) -> None:
    """Guards that layers of the checkpoint, a model next to it, and looking text up are distinguished."""
    made = recipe(V4, speculation=Speculation(method, 2, options))
    assert (drafts(made, V4), drafter(made, V4)) == (own, other)


def test_a_model_without_draft_layers() -> None:
    """Guards that a model without MTP layers drafts with another one, and has no draft parts."""
    made = recipe(DENSE, speculation=Speculation("mtp", 2))
    assert (drafts(made, DENSE), drafter(made, DENSE), draft_layers(DENSE)) == (False, True, ())


def test_draft_layers_stay_in_bf16_where_a_tool_quantized() -> None:
    """Guards that the MTP layer of an NVFP4 checkpoint counts with 2 bytes a number, of a native FP8 one with 1."""
    moe = replace(model_shape("minimax-m2.7-nvfp4"), mtp_layers=1)
    one = 3 * moe.experts * moe.hidden * moe.expert_intermediate
    assert bytes_by_name(draft_layers(moe))["draft experts"] == pytest.approx(2 * one)
    native = replace(moe, format="fp8", expert_format="")
    assert bytes_by_name(draft_layers(native))["draft experts"] == pytest.approx(one, rel=0.01)


def test_tables_of_the_engine() -> None:
    """Guards cos and sin for every position, and SGLang's own way to measure weights."""
    assert bytes_by_name(uncounted(recipe(DENSE), DENSE)) == {"tables of positions": DENSE.positions * 128 * 2.0}
    found = bytes_by_name(uncounted(recipe(DENSE, "sglang 0.5.20"), DENSE))
    assert found["tables of positions"] == DENSE.positions * 128 * 4.0, "SGLang's are FP32"
    assert [*found] == ["tables of positions", "kernels loaded meanwhile"]


def test_two_blocks_are_one_drafted_layer() -> None:
    """Guards Nemotron-H's draft of two blocks, attention and experts, which is not two layers of both."""
    hybrid = model_shape("nemotron-3-super")
    assert hybrid.single_blocks and hybrid.mtp_layers == 2
    assert draft_layers(hybrid) == draft_layers(replace(hybrid, mtp_layers=1)) != ()


def test_what_was_not_read_pads_no_mxfp4() -> None:
    """Guards that engines and releases whose code was not read are not repacked, nor experts that fit their tiles."""
    odd: ModelShape = model_shape("gpt-oss-120b")
    assert repacked(main(odd), recipe(odd, "sglang 0.5.20"), odd) == main(odd)
    assert repacked(main(V4), recipe(V4, tp=2), V4) == main(V4)
    marlin, cutlass = (
        sum(part.bytes for part in repacked(main(odd), recipe(odd, flags={"moe-backend": name}), odd))
        for name in ("marlin", "flashinfer_cutlass")
    )
    assert marlin > cutlass > sum(part.bytes for part in main(odd))


def test_cutlass_is_an_option_and_no_part_of_a_name() -> None:
    """Guards that what an image is called, or a variable that is set to 0, changes nothing."""
    odd, by = model_shape("gpt-oss-120b"), "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS"
    plain = recipe(odd)
    named = replace(plain, engine=replace(plain.engine, image="org/vllm-cutlass:1"), env={by: "0"})
    assert repacked(main(odd), named, odd) == repacked(main(odd), plain, odd)
    assert repacked(main(odd), replace(plain, env={by: "1"}), odd) != repacked(main(odd), plain, odd)


def test_encoder_as_configured() -> None:
    """Guards vLLM's option that gives every rank the whole encoder."""
    told = recipe(DENSE, flags={"mm-encoder-tp-mode": "data"})
    assert (spread_encoder(recipe(DENSE)), spread_encoder(told)) == (Spread.HEADS, Spread.COPY)


def test_kernels_that_nobody_chose_may_not_pad() -> None:
    """Guards gpt-oss-120b: 61 GiB with kernels that keep its experts as they are, 66 with those that pad them."""
    oss = model_shape("gpt-oss-120b")
    auto, named = (rank_weights(recipe(oss, flags=flags), oss, None) for flags in ({}, {"moe-backend": "marlin"}))
    assert auto.bytes == named.bytes and auto.low is not None and named.low is not None
    assert auto.low < 0.95 * named.low
