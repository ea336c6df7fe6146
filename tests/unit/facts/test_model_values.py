"""Tables next to the vocabulary: as large as published, and never silently left out."""

import json
from typing import Any

import pytest

from sparkwright.domain.model import ModelShape
from sparkwright.facts.checkpoint import doubts
from sparkwright.facts.model_config import parse
from unit.planner.memory_samples import model_shape

PLAIN = {"num_hidden_layers": 30, "num_attention_heads": 8, "hidden_size": 2048, "vocab_size": 262400}


def read(**keys: Any) -> ModelShape:
    found = parse(json.dumps(PLAIN | keys))
    assert isinstance(found, ModelShape)
    return found


@pytest.mark.parametrize(
    ("name", "billions", "written"),
    [
        ("gemma-4-e4b", 2.82, "bf16"),  # 262,144 words x 42 layers x 256
        ("qwen3.8-flash-next", 51.2, ""),  # its card: 51B n-gram; 95.4 GiB in BF16, 47.7 in FP8
        ("deepseek-v4.1-flash", 196.6, "mxfp8"),  # 189.1 GiB with a scale for 32 numbers
    ],
)
def test_published_tables(name: str, billions: float, written: str) -> None:
    """Guards the counts: without them a plan would leave out up to half of the weights."""
    assert model_shape(name).tables / 1e9 == pytest.approx(billions, rel=0.001)
    assert model_shape(name).table_format == written and not model_shape(name).tables_unknown


def test_other_ways_to_write_them() -> None:
    """Guards Gemma 3n's smaller second vocabulary, a named format, and LongCat's count in vocabularies."""
    gemma = read(hidden_size_per_layer_input=256, vocab_size_per_layer_input=262144)
    assert gemma.tables == 262144 * 256 * 30
    qwen = read(ple_layer_ids=[2, 9], ple_embedding_dtype="float8_e4m3fn", ngram_vocab_size_base=1000, ngram_size=2)
    assert (qwen.tables, qwen.table_format) == (2 * 8 * 1000 * 256, "fp8")
    assert read(ngram_vocab_size_ratio=78).tables == 78 * 262400 * 2048


@pytest.mark.parametrize("keys", [{"engram_layer_ids": [1, 14]}, {"ngram_layers": 3}, {"over_encoding_size": 9}])
def test_what_cannot_be_counted_is_reported(keys: dict[str, Any]) -> None:
    """Guards a config that names tables in another way: the plan must not call its weights exact."""
    found = read(**keys)
    assert (found.tables, found.tables_unknown) == (0, True)
    assert "but not how large: none is counted" in doubts(json.dumps(PLAIN | keys), found)[0]


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"hidden_size_per_layer_input": None, "vocab_size_per_layer_input": 262144},
        {"ple_layer_ids": [], "ple_conv_kernel_size": 4},
    ],
)
def test_a_model_without_them(keys: dict[str, Any]) -> None:
    """Guards models of the same classes that have none: no doubt, no bytes."""
    assert (read(**keys).tables, read(**keys).tables_unknown) == (0, False)


FOUR = {"num_bits": 4, "type": "float", "group_size": 16}
GROUPS = {"config_groups": {"group_0": {"weights": FOUR, "input_activations": FOUR}}}


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        ({"quant_method": "compressed-tensors", **GROUPS}, 4),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": FOUR}}}, 16),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", **GROUPS, "quantized_layers": {
            "layers.0.mlp": {"quant_algo": "W4A16_NVFP4"}, "layers.1.mlp": {"quant_algo": "W4A16_NVFP4"},
            "lm_head": {"quant_algo": "NVFP4"}, "layers.0.attn": {"quant_algo": "FP8"}}}, 16),
        ({"quant_method": "fp8"}, 0),
    ],
)  # fmt: skip
def test_what_four_bits_are_multiplied_with(quantization: dict[str, Any], bits: int) -> None:
    """The list of layers counts more than the groups; nothing said is nothing known."""
    assert read(quantization_config=quantization).activations == bits
