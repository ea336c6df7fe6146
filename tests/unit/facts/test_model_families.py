"""One config.json of each kind of attention in the real format -> what it keeps for a token and for a sequence.

The dimensions are those of published models. What they must give is known from elsewhere: from the bytes a token that
were measured with them, or from the caches that vLLM makes for the family.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from sparkwright.domain.model import ModelShape
from sparkwright.facts.checkpoint import doubts
from sparkwright.facts.model_config import parse
from unit.for_each import for_each

DATA = Path(__file__).parents[2] / "data" / "models"


def read(name: str) -> ModelShape:
    shape = parse((DATA / f"{name}.config.json").read_text())
    assert isinstance(shape, ModelShape)
    return shape


FAMILIES: dict[str, dict[str, Any]] = {
    "qwen3.6-35b-a3b": {
        "full_layers": 10, "state_layers": 30, "state_kind": "gdn", "state_heads": 16, "state_width": 4096,
        "state_conv": 4, "state_conv_width": 8192, "state_matrix": 524288, "state_format": "fp32", "mtp_layers": 1,
        "kv_heads": 2, "head_dim": 256, "senses": True, "encoder": 411, "draft_architecture": "MTP", "format": "bf16"},
    "qwen3.8-flash-next": {
        "full_layers": 12, "state_layers": 36, "state_kind": "gdn", "state_matrix": 786432, "state_conv_width": 10240,
        "index_kind": "qsa", "index_layers": 12, "index_heads": 4, "index_dim": 128, "index_topk": 2048,
        "index_ratio": 4},
    "nemotron-3-super": {
        "single_blocks": True, "full_layers": 8, "state_layers": 40, "ffn_layers": 40, "moe_layers": 40,
        "state_kind": "mamba2", "state_heads": 8, "state_width": 8192, "state_conv_width": 10240,
        "state_matrix": 1048576, "state_format": "fp32", "expert_hidden": 1024, "ungated": True, "shared_experts": 2,
        "format": "fp8", "expert_format": "nvfp4", "expert_group": 16, "activations": 4, "kv_format": "fp8"},
    "kimi-linear-48b": {
        "full_layers": 7, "state_layers": 20, "state_kind": "kda", "state_width": 4096, "state_conv": 4,
        "state_conv_width": 12288, "state_matrix": 524288, "latent": 576, "kv_heads": 1, "positions": 1048576},
    "glm-5.3-flash": {
        "full_layers": 11, "state_layers": 34, "state_kind": "kda", "state_heads": 64, "state_matrix": 1048576,
        "latent": 512, "rope_dim": 0, "index_kind": "dsa", "index_layers": 11, "index_ratio": 4, "index_dim": 128,
        "moe_layers": 42, "senses": True},
    "glm-5.2": {
        "latent": 576, "full_layers": 0, "attention_layers": 78, "index_kind": "dsa", "index_layers": 21,
        "index_heads": 32, "index_topk": 2048, "index_ratio": 0, "moe_layers": 75, "mtp_layers": 1},
    "deepseek-v3.2": {"latent": 576, "index_layers": 61, "index_heads": 64, "moe_layers": 58, "rows": 128},
    "deepseek-v4-flash": {
        "full_layers": 41, "window_layers": 2, "window": 128, "index_kind": "dsa", "index_layers": 21,
        "index_heads": 64, "index_topk": 512, "shared_kv_layers": 0, "draft_architecture": "MTP"},
    "deepseek-v4.1-flash": {
        "full_layers": 38, "window_layers": 2, "kv_sources": (2, 8, 14, 20), "shared_kv_layers": 34,
        "shared_full_layers": 34, "index_layers": 4, "draft_architecture": "DSpark", "expert_format": "mxfp4"},
    "mimo-v2.5": {
        "full_layers": 9, "window_layers": 39, "window": 128, "kv_heads": 4, "window_kv_heads": 8, "head_dim": 192,
        "window_head_dim": 0, "value_dim": 128, "window_value_dim": 0, "moe_layers": 47},
    "gemma-4-26b-a4b": {
        "full_layers": 5, "window_layers": 25, "window": 1024, "kv_heads": 2, "head_dim": 512, "window_kv_heads": 8,
        "window_head_dim": 256, "experts": 128, "shared_experts": 3, "dense_layers": 0, "tied": True},
    "gemma-4-e4b": {
        "full_layers": 7, "window_layers": 35, "kv_heads": 2, "head_dim": 512, "window_kv_heads": 0,
        "window_head_dim": 256, "shared_kv_layers": 18, "shared_full_layers": 3, "experts": 0},
    "gemma-3-27b": {
        "full_layers": 10, "window_layers": 52, "window": 1024, "vocab": 262208, "positions": 131072, "tied": True},
    "gpt-oss-120b": {
        "full_layers": 18, "window_layers": 18, "window": 128, "window_kv_heads": 0, "format": "bf16",
        "expert_format": "mxfp4", "expert_group": 32},
    "llama-4-scout": {
        "full_layers": 12, "window_layers": 36, "window": 8192, "expert_intermediate": 8192, "intermediate": 16384,
        "shared_experts": 1, "moe_layers": 48},
    "minimax-m3": {
        "attention_layers": 60, "index_kind": "msa", "index_layers": 57, "index_heads": 4, "index_dim": 128,
        "index_topk": 2048, "intermediate": 12288, "expert_intermediate": 3072, "dense_layers": 3},
    "step-3.5-flash": {
        "full_layers": 12, "window_layers": 33, "kv_heads": 8, "window_kv_heads": 0, "moe_layers": 42,
        "shared_experts": 1, "positions": 262144},
    "laguna-xs-2.1": {
        "full_layers": 10, "window_layers": 30, "window": 512, "moe_layers": 39, "format": "bf16",
        "expert_format": "nvfp4"},
    "inkling-small": {
        "full_layers": 7, "window_layers": 35, "window": 512, "state_layers": 0, "state_kind": "sconv",
        "state_conv": 4, "state_conv_width": 10240, "intermediate": 16384, "expert_intermediate": 2048,
        "moe_layers": 40, "mtp_layers": 8},
    "mistral-small-4": {"latent": 320, "attention_layers": 36, "moe_layers": 36, "format": "bf16"},
    "lfm2-8b-a1b": {
        "full_layers": 6, "state_layers": 18, "state_kind": "sconv", "state_conv_width": 2048, "state_matrix": 0,
        "moe_layers": 22},
}  # fmt: skip


@for_each("name", FAMILIES)
def test_kinds_of_attention(name: str) -> None:
    """Guards what each kind of attention keeps: a cache of the wrong size is off by up to 25 times."""
    shape = read(name)
    assert {key: getattr(shape, key) for key in FAMILIES[name]} == FAMILIES[name]


def test_every_dimension_is_read_from_some_file() -> None:
    """Guards that no field of a shape exists which no config.json can fill."""
    shapes = [read(path.name.removesuffix(".config.json")) for path in sorted(DATA.glob("*.config.json"))]
    # `inferred` is of tensors alone; `unread` and `loose` are of what is not understood.
    # No family that is served today has values of another width in its windows only, or tables that cannot be counted;
    # configs with an output that is quantized are those of single checkpoints (test_model_config.py).
    unread = {f.name for f in fields(ModelShape) if not any(getattr(shape, f.name) for shape in shapes)}
    assert unread == {"window_value_dim", "tables_unknown", "inferred", "unread", "loose", "output_format"}


@for_each(
    "eyes, millions",
    [
        ({"depth": 27, "hidden_size": 1152, "intermediate_size": 4304}, 411),
        ({"num_hidden_layers": 50, "hidden_size": 1536, "intermediate_size": 8960}, 1848),
        ({"encoder_layers": 32, "d_model": 1280, "encoder_ffn_dim": 5120}, 629),
        ({"depth": 27, "hidden_size": 1152}, 0),
        ({"depth": 10**9, "hidden_size": 1152, "intermediate_size": 4304}, 0),
        ({"depth": 27, "hidden_size": -1152, "intermediate_size": 4304}, 0),
        ({"depth": "27", "hidden_size": 1152, "intermediate_size": 4304}, 0),
    ],
    ids=str,
)
def test_an_encoder_has_the_size_of_its_own_configuration(eyes: dict[str, Any], millions: int) -> None:
    """Muse-Glimmer's has 1.8 billion numbers, four times the usual one; one without sizes, or with absurd ones, 0."""
    top = json.loads((DATA / "qwen3.6-35b-a3b.config.json").read_text())
    shape = parse(json.dumps({**top, "vision_config": eyes}))
    assert isinstance(shape, ModelShape) and shape.senses and shape.encoder == millions


@for_each("path", sorted(DATA.glob("*.config.json")), ids=lambda path: path.name)
def test_nothing_is_doubted_in_what_is_understood(path: Path) -> None:
    """Guards that a figure about a known kind of attention is not called a bound."""
    assert doubts(path.read_text(), parse(path.read_text())) == ()


LLAMA = {"num_hidden_layers": 12, "num_attention_heads": 16, "hidden_size": 2048, "max_position_embeddings": 32768}
ODD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "window throughout": (
        {"model_type": "mistral", "sliding_window": 4096}, {"window_layers": 12, "full_layers": 0, "window": 4096}),
    "window as long as the context": (
        {"model_type": "phi3", "sliding_window": 32768}, {"window_layers": 0, "attention_layers": 12}),
    "window of a class that is not known": (
        {"model_type": "novel", "sliding_window": 4096}, {"window_layers": 0, "attention_layers": 12}),
    "window switched off": (
        {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 4},
        {"window_layers": 0}),
    "window from a layer on": (
        {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 4},
        {"window_layers": 8, "full_layers": 4}),
    "letters": ({"sliding_window_pattern": "LLLG", "sliding_window": 512}, {"window_layers": 9, "full_layers": 3}),
    "jamba": (
        {"attn_layer_period": 4, "attn_layer_offset": 2, "mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4},
        {"full_layers": 3, "state_layers": 9, "state_kind": "mamba1", "state_matrix": 65536}),
    "both in each layer": (
        {"model_type": "falcon_h1", "mamba_n_heads": 32, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 256},
        {"full_layers": 12, "state_layers": 12, "state_width": 2048, "state_matrix": 524288}),
    "numbered": ({"attn_layer_indices": [3, 9]}, {"full_layers": 2, "state_layers": 10}),
    "marks": (
        {"attn_type_list": [0, 0, 0, 1] * 3, "head_dim": 128},
        {"full_layers": 3, "state_layers": 9, "state_kind": "lightning", "state_matrix": 262144}),
    "a state of unknown size": (
        {"layer_types": ["linear_attention", "full_attention"] * 6, "head_dim": 128},
        {"state_layers": 6, "state_kind": "", "state_matrix": 0, "state_conv_width": 0}),
    "compressed, by the names of layers": (
        {"layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"] * 4,
         "compress_rates": {"compressed_sparse_attention": 8, "heavily_compressed_attention": 64}},
        {"compress": (0, 8, 64) * 4, "full_layers": 8, "window_layers": 4}),
    "chosen by another layer": (
        {"kv_lora_rank": 512, "index_head_dim": 128, "index_topk": 2048, "indexer_types": ["full", "shared"] * 6},
        {"index_layers": 6}),
    "a source for each layer": (
        {"kv_lora_rank": 512, "kv_source_layers": [0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10]},
        {"shared_kv_layers": 6, "shared_full_layers": 6, "kv_sources": ()}),
    "the first of four": (
        {"model_type": "granite_swa", "num_hidden_layers": 13, "sliding_window": 512}, {"full_layers": 4}),
    "counted from the end": (
        {"model_type": "muse_spark_text", "num_hidden_layers": 14}, {"full_layers": 4, "window": 2048}),
    "some layers without attention": (
        {"num_key_value_heads": None, "block_configs": [
            {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 3.0}},
            {"attention": {"no_op": True, "n_heads_in_group": None}, "ffn": {"no_op": True, "ffn_mult": None}},
            {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 4.5}}] * 4},
        {"full_layers": 8, "attention_layers": 8, "kv_heads": 4, "intermediate": 3413, "single_blocks": False}),
    "two attentions a layer": (
        {"model_type": "longcat_flash", "num_hidden_layers": None, "num_layers": 14, "kv_lora_rank": 512},
        {"layers": 14, "attention_layers": 28, "latent": 512}),
    "a table of heads": (
        {"layer_types": ["sliding_attention", "full_attention"] * 6, "head_dim": 64, "num_key_value_heads": 4,
         "per_layer_config": {"1": {"head_dim": 128, "num_key_value_heads": 2}}},
        {"kv_heads": 2, "head_dim": 128, "window_kv_heads": 4, "window_head_dim": 64}),
    "layers only listed": (
        {"num_hidden_layers": None, "layers_block_type": ["mamba", "hybrid"] * 3},
        {"layers": 6, "full_layers": 3, "state_layers": 6}),
    "marks of more layers than there are": (
        {"sparse_attention_config": {"sparse_index_dim": 128, "sparse_attention_freq": [0, 0] + [1] * 58}},
        {"index_kind": "msa", "index_layers": 10}),
    "the order of an expert's rows, which changes no size": (
        {"inference_moe_w13_interleaved": True}, {"unread": "", "loose": False}),
    "ModelOpt's older files": (
        {"quantization_config": {"producer": {"name": "modelopt"}, "quantization": {
            "quant_algo": "NVFP4", "group_size": 16}}}, {"format": "nvfp4", "group": 16}),
}  # fmt: skip


@for_each("case", ODD)
def test_ways_to_write_which_layer_is_which(case: str) -> None:
    """Guards the rarer ways of writing it down, and that a window or a state which nobody describes is not made up."""
    added, expected = ODD[case]
    shape = parse(json.dumps(LLAMA | added))
    assert isinstance(shape, ModelShape)
    assert {key: getattr(shape, key) for key in expected} == expected
