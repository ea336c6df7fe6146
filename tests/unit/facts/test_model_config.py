"""config.json of the families that are served today -> their shape, and never a guess."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts.model_config import parse
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.schema import ShapePart
from unit.for_each import for_each

DATA = Path(__file__).parents[2] / "data" / "models"
# Fields of real files, cut to what says something about the shape.
GPT_OSS = {
    "architectures": ["GptOssForCausalLM"], "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 128,
    "num_experts_per_tok": 4, "sliding_window": 128, "vocab_size": 201088,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]},
    "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN35 = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"], "vision_config": {"num_hidden_layers": 27, "depth": 27},
    "tie_word_embeddings": False,
    "text_config": {
        "hidden_size": 4096, "num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 2,
        "head_dim": 256, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 1024,
        "shared_expert_intermediate_size": 1024, "full_attention_interval": 4, "linear_num_key_heads": 16,
        "linear_num_value_heads": 64, "linear_value_head_dim": 128, "vocab_size": 248320,
        "max_position_embeddings": 262144, "mtp_num_hidden_layers": 1, "dtype": "bfloat16"},
    "quantization_config": {"quant_method": "auto-round", "bits": 4, "group_size": 128},
}  # fmt: skip
NEMOTRON = {
    "architectures": ["NemotronHForCausalLM"], "hidden_size": 2688, "num_hidden_layers": 52, "num_attention_heads": 32,
    "num_key_value_heads": 2, "head_dim": 128, "n_routed_experts": 128, "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712, "n_shared_experts": 1,
    "moe_latent_size": 1024, "mlp_hidden_act": "relu2", "intermediate_size": 1856,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8, "vocab_size": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
GLM52 = {
    "architectures": ["GlmMoeDsaForCausalLM"], "hidden_size": 6144, "intermediate_size": 12288, "num_hidden_layers": 78,
    "num_attention_heads": 64, "num_key_value_heads": 64, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 192, "v_head_dim": 256, "q_lora_rank": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "num_nextn_predict_layers": 1,
    "vocab_size": 154880, "dtype": "bfloat16",
    "quantization_config": {"quant_method": "compressed-tensors", "ignore": ["re:.*lm_head"], "config_groups": {
        "group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}}}},
}  # fmt: skip
GPTQ = {
    "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 94, "num_attention_heads": 64,
    "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
    "moe_intermediate_size": 1536, "intermediate_size": 12288, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
}  # fmt: skip
GEMMA = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {"hidden_size": 5376, "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 16,
                    "head_dim": 128, "sliding_window": 1024, "sliding_window_pattern": 6, "intermediate_size": 21504},
    "vocab_size": 262208, "torch_dtype": "bfloat16",
}  # fmt: skip
KIMI = {
    "architectures": ["KimiLinearForCausalLM"], "hidden_size": 2304, "num_hidden_layers": 27, "num_attention_heads": 32,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_experts": 256,
    "num_experts_per_token": 8, "moe_intermediate_size": 1024, "first_k_dense_replace": 1, "vocab_size": 163840,
    "linear_attn_config": {"num_heads": 32, "head_dim": 128, "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
                           "kda_layers": [n for n in range(1, 27) if n % 4]},
}  # fmt: skip
LLAMA = {"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}
# As SGLang pull requests 27906, 32959 and 38121 and tokenspeed 749 describe NVIDIA's mixed exports.
MIXED = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
QWEN36 = GPTQ | {"dtype": "bfloat16", "quantization_config": MIXED | {"quantized_layers": {
    "model.language_model.layers.0.linear_attn.in_proj_qkv": {"quant_algo": "FP8"},
    "model.language_model.layers.0.mlp.experts.0.up_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
    "model.language_model.layers.0.mlp.shared_expert.up_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
    "lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16}, "odd": 1}}}  # fmt: skip
QWEN38 = GPTQ | {"dtype": "bfloat16", "quantization_config": MIXED | {"quantized_layers": {
    "model.layers.1.ple.ple_embedding.ngram_embedding": {"quant_algo": "FP8"},
    "model.layers.0.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16},
    "mtp.layers.0.mlp.experts": {"quant_algo": "FP8_PB_WO", "group_size": 128}}}}  # fmt: skip
BLOCKS = GPTQ | {
    "quantization_config": {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "quantized_layers": {"model.layers.0.ffn.experts": {"quant_algo": "NVFP4", "group_size": 16}},
    }
}
SUPER = NEMOTRON | {"quantization_config": MIXED | {"quantized_layers": {
    "backbone.layers.0.mixer.in_proj": {"quant_algo": "FP8"}, "backbone.layers.0.mixer.out_proj": {"quant_algo": "FP8"},
    "backbone.layers.1.mixer.experts.0.up_proj": {"quant_algo": "NVFP4", "group_size": 16}}}}  # fmt: skip
DENSE = LLAMA | {
    "torch_dtype": "bfloat16",
    "quantization_config": MIXED
    | {
        "quantized_layers": {
            "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
            "model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4"},
        }
    },
}


def read(config: dict[str, Any]) -> ModelShape:
    shape = parse(json.dumps(config))
    assert isinstance(shape, ModelShape)
    return shape


def fields_of(shape: ModelShape, expected: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(shape, name) for name in expected}


FAMILIES = {
    "gpt-oss": (GPT_OSS, {
        "full_layers": 18, "window_layers": 18, "window": 128, "experts": 128, "expert_intermediate": 2880,
        "intermediate": 0, "quantization": "mxfp4", "format": "bf16", "expert_format": "mxfp4", "expert_group": 32}),
    "nested": (QWEN35, {
        "architecture": "Qwen3_5MoeForConditionalGeneration", "layers": 60, "full_layers": 15, "state_layers": 45,
        "state_heads": 16, "state_width": 8192, "experts": 512, "shared_experts": 1, "moe_layers": 60,
        "mtp_layers": 1, "format": "int4", "group": 128, "positions": 262144}),
    "single blocks": (NEMOTRON, {
        "single_blocks": True, "full_layers": 6, "state_layers": 23, "ffn_layers": 23, "moe_layers": 23,
        "state_heads": 8, "state_width": 4096, "attention_layers": 6, "dense_layers": 0, "format": "bf16",
        "expert_hidden": 1024, "shared_experts": 2, "ungated": True}),
    "mla": (GLM52, {
        "latent": 576, "kv_heads": 1, "head_dim": 256, "value_dim": 256, "moe_layers": 75, "dense_layers": 3,
        "format": "fp8", "rows": 128, "group": 128, "quantization": "compressed-tensors", "mtp_layers": 1}),
    "gptq": (GPTQ, {"format": "int4", "group": 128, "rows": 0, "moe_layers": 94, "dense_layers": 0}),
    "every sixth": (GEMMA, {"full_layers": 10, "window_layers": 52, "window": 1024, "vocab": 262208}),
    "lists": (KIMI, {"full_layers": 7, "state_layers": 20, "state_heads": 32, "state_width": 4096, "moe_layers": 26}),
    "mixed": (QWEN36, {"output_format": "nvfp4",
        "format": "fp8", "group": 0, "expert_format": "nvfp4", "expert_group": 16, "quantization": "modelopt"}),
    "mixed experts": (QWEN38, {"format": "bf16", "expert_format": "nvfp4", "expert_group": 16}),
    "experts alone": (BLOCKS, {"format": "fp8", "rows": 128, "group": 128, "expert_format": "nvfp4"}),
    "mixed mixers": (SUPER, {"format": "fp8", "group": 0, "expert_format": "nvfp4", "expert_group": 16}),
    "mixed dense": (DENSE, {"format": "nvfp4", "group": 16, "expert_format": ""}),
    "plain": (LLAMA, {"kv_heads": 32, "head_dim": 128, "experts": 0, "format": "", "attention_layers": 32}),
}  # fmt: skip


@for_each("family", FAMILIES)
def test_families(family: str) -> None:
    """Guards that each family's own keys are understood: a wrong count makes a wrong split."""
    config, expected = FAMILIES[family]
    assert fields_of(read(config), expected) == expected


FILES: dict[str, dict[str, Any]] = {
    "deepseek-v4-flash": {"kv_heads": 1, "head_dim": 512, "window_layers": 2, "format": "fp8", "expert_format": "mxfp4",
                          "experts": 256, "moe_layers": 43, "mtp_layers": 1},
    "dsv2-lite": {"latent": 576, "head_dim": 192, "value_dim": 128, "moe_layers": 26, "shared_experts": 2},
    "minimax-m2.7-nvfp4": {"format": "bf16", "expert_format": "nvfp4", "expert_group": 16, "quantization": "modelopt",
                           "expert_intermediate": 1536, "mtp_layers": 0},
    "qwen3-30b-a3b": {"experts": 128, "expert_intermediate": 768, "moe_layers": 48, "dense_layers": 0},
    "qwen3-8b": {"experts": 0, "intermediate": 12288, "dense_layers": 36, "kv_heads": 8},
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_that_engines_started_with(name: str) -> None:
    """Guards real configs of real dimensions."""
    shape = parse((DATA / f"{name}.config.json").read_text())
    assert isinstance(shape, ModelShape)
    assert fields_of(shape, FILES[name]) == FILES[name]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("[1]", "no mapping"),
        ("{}", "number of layers"),
        (json.dumps(LLAMA | {"num_attention_heads": "many"}), "of heads"),
        (json.dumps(LLAMA | {"layer_types": ["full_attention", "quantum"]}), "not known here: quantum"),
    ],
)
def test_unknown_stays_unknown(text: str, why: str) -> None:
    """Guards that what a file does not report is not made up."""
    shape = parse(text)
    assert isinstance(shape, Unknown)
    assert why in shape.why


def test_a_config_with_more_keys_than_any_model_has_is_not_read() -> None:
    """Guards ten seconds of searching in what nobody meant as a config."""
    shape = parse(json.dumps(LLAMA | {f"key {n}": n for n in range(3000)}))
    assert isinstance(shape, Unknown) and "keys; no model has so many" in shape.why


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = sorted({key for config, _ in FAMILIES.values() for key in config} | {"compress_ratios", "moe_layer_freq"})


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(FAMILIES)), st.sampled_from(KEYS), JSON)
def test_any_value_of_any_key(family: str, key: str, value: Any) -> None:
    """Guards that an odd file makes an Unknown or a shape, never an exception in the middle of a plan."""
    assert isinstance(parse(json.dumps(FAMILIES[family][0] | {key: value})), ModelShape | Unknown)


def test_more_layers_than_any_model_has() -> None:
    """Guards the plan against a number with which it would count for hours."""
    config, _ = next(iter(FAMILIES.values()))
    found = parse(json.dumps(config | {"num_hidden_layers": 10**12}))
    assert isinstance(found, Unknown) and "more than 10000 layers" in found.why


def test_the_recipe_has_the_same_keys() -> None:
    """Guards that model.shape of a recipe can report all that a file can."""
    text = "title: x\nmodel: {path: m, shape: {layers: 4, heads: 8, kv_heads: 2, compress: [0, 4]}}\n"
    recipe = load_recipe(f"{text}engine: {{name: vllm, version: 0.21.0, runtime: process}}\n", "x.yaml")
    assert recipe.model.shape == ModelShape(4, 8, 2, compress=(0, 4))
    assert set(ShapePart.model_fields) == {field.name for field in fields(ModelShape)}


def test_configurations_in_each_other_without_end() -> None:
    """A model's author may nest them as deep as JSON goes: reading ends after a few levels."""
    for many in (990, 3000):  # what fails is a matter of Python's version
        assert isinstance(parse('{"text_config":' * many + "{}" + "}" * many), Unknown)
    inner = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
    assert read({"text_config": {"llm_config": inner}}).layers == 2


@for_each(
    "section, written",
    [
        ({"quant_method": "exl3", "bits": 4.05, "head_bits": 6}, "4.050bit"),
        ({"quant_method": "exl3", "bits": 3}, "3.000bit"),
        ({"quant_method": "exl3"}, ""),
        ({"quant_method": "exl3", "bits": -1}, ""),
        ({"quant_method": "exl3", "bits": "4"}, ""),
        ({"quant_method": "exl3", "bits": True}, ""),
        ({"quant_method": "aqlm", "in_group_size": 8, "num_codebooks": 1, "nbits_per_codebook": 16}, "2.000bit"),
        ({"quant_method": "hqq", "bits": 400}, ""),
    ],
)
def test_packings_give_their_bits(section: dict[str, Any], written: str) -> None:
    """Guards EXL3 and AQLM: their configs say how many bits a weight has, and absurd figures say nothing."""
    assert read(LLAMA | {"torch_dtype": "float16", "quantization_config": section}).format == written


@for_each(
    "named, output",
    [
        ({"targets": ["re:.*lm_head"], "weights": {"num_bits": 8, "type": "float"}}, "fp8"),
        ({"targets": ["lm_head"], "weights": {"num_bits": 4, "type": "int", "group_size": 128}}, "int4"),
        ({"targets": ["lm_head"], "weights": {"num_bits": 3, "type": "int"}}, ""),
        ({"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}, ""),
        ({"targets": "lm_head", "weights": None}, ""),
        ("lm_head", ""),
    ],
    ids=str,
)
def test_an_output_that_is_quantized(named: object, output: str) -> None:
    """unsloth's Qwen3.8-27B has its output in FP8: each token of a draft reads it, in 16 bits 2.5 GB of it."""
    config = LLAMA | {
        "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": named}}
    }
    assert read(config).output_format == output
