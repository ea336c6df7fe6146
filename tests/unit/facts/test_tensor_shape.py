"""Dimensions by tensors' sizes: compared with those of the configuration that the same model has."""

from pathlib import Path

import pytest

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.model import ModelShape
from sparkwright.facts import model_config
from sparkwright.facts.tensor_shape import inferred

MODELS = Path(__file__).parents[2] / "data" / "models"
LAYER = "model.layers.#"


def dense_tensors(layers: int, hidden: int, query: int, key: int, inner: int, vocab: int) -> dict[str, tuple[int, int]]:
    """Name -> numbers of one tensor, how many."""
    sizes = {"q_proj": query, "k_proj": key, "v_proj": key, "o_proj": query}
    found = {f"{LAYER}.self_attn.{name}.weight": (width * hidden, layers) for name, width in sizes.items()}
    found |= {f"{LAYER}.mlp.{name}.weight": (inner * hidden, layers) for name in ("gate_proj", "up_proj", "down_proj")}
    found |= {f"{LAYER}.{name}.weight": (hidden, layers) for name in ("input_layernorm", "post_attention_layernorm")}
    return found | {"model.embed_tokens.weight": (vocab * hidden, 1), "lm_head.weight": (vocab * hidden, 1)}


def groups(sizes: dict[str, tuple[int, int]], packed: float = 2.0) -> tuple[TensorGroup, ...]:
    """packed: bytes of a number in the matrices of the layers."""
    made = []
    for name, (size, count) in sizes.items():
        inner = "proj" in name
        dtype = {2.0: "BF16", 1.0: "F8_E4M3", 0.5: "U8"}[packed if inner else 2.0]
        made.append(TensorGroup(name, dtype, int(size * count * (packed if inner else 2.0)), count))
    return tuple(made)


@pytest.mark.parametrize("packed", [2.0, 1.0, 0.5])
def test_a_dense_model_is_as_its_config_has_it(packed: float) -> None:
    """Qwen3-8B, as trained and in formats of eight and four bits; with the config's counts also the heads."""
    text = (MODELS / "qwen3-8b.config.json").read_text()
    known = model_config.parse(text)
    assert isinstance(known, ModelShape)
    found = inferred(groups(dense_tensors(36, 4096, 4096, 1024, 12288, 151936), packed))
    assert found and found.inferred
    for name in ("layers", "heads", "kv_heads", "head_dim", "hidden", "vocab", "intermediate"):
        assert getattr(found, name) == getattr(known, name), name
    told = inferred(groups(dense_tensors(36, 4096, 4096, 1024, 12288, 151936)), text)
    assert told and told.positions == known.positions


def test_experts_and_latents_show() -> None:
    """A router's width is the number of experts; MLA's one row is whole."""
    sizes = dense_tensors(4, 2048, 4096, 0, 1, 1000)
    sizes = {name: size for name, size in sizes.items() if ".mlp." not in name and "k_proj" not in name}
    sizes |= {
        f"{LAYER}.self_attn.kv_a_proj_with_mqa.weight": (576 * 2048, 4),
        f"{LAYER}.mlp.experts.#.up_proj.weight": (768 * 2048, 4 * 128),
        f"{LAYER}.mlp.gate.weight": (128 * 2048, 4),
    }
    found = inferred(groups(sizes))
    assert found
    assert (found.latent, found.kv_heads, found.experts, found.moe_layers) == (576, 1, 128, 4)
    assert (found.expert_intermediate, found.experts_per_token) == (768, 8)


def test_queries_keys_and_values_may_be_one_matrix() -> None:
    """The output projection's inputs are the queries; keys and values share the rest."""
    sizes = dense_tensors(12, 768, 768, 256, 3072, 50257)
    whole = {name: size for name, size in sizes.items() if name.split(".")[-2] not in ("q_proj", "k_proj", "v_proj")}
    found = inferred(groups(whole | {f"{LAYER}.self_attn.qkv_proj.weight": ((768 + 2 * 256) * 768, 12)}))
    assert found and (found.kv_heads * found.head_dim, found.heads * found.head_dim) == (256, 768)


@pytest.mark.parametrize("tensors", [(), (TensorGroup("x", "BF16", 10),), (TensorGroup("a.#.b", "U8", 1, 9),)])
def test_without_layers_or_widths_nothing_is_inferred(tensors: tuple[TensorGroup, ...]) -> None:
    """No division by nothing, no guess."""
    assert inferred(tensors, "[]") is None
