"""The metadata of a GGUF file -> ModelShape: its keys are put in the words of config.json, which is then read as ever.

Keys: gguf-py's constants (0.17) and what llama.cpp's converters write into them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts import model_config

# Number -> (name, numbers in a block, bytes of a block). From ggml's table of types (ggml.h, ggml-common.h).
_BLOCKS: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
TYPES = {number: name for number, (name, _, _) in _BLOCKS.items()}
# Name -> (ModelShape.format, inputs that share a scale) for those that have a format of that kind.
FORMATS = {
    "F32": ("fp32", 0), "F16": ("bf16", 0), "BF16": ("bf16", 0), "Q8_0": ("int8", 32), "Q4_0": ("int4", 32),
    "Q4_1": ("int4", 32), "Q4_K": ("int4", 32), "IQ4_NL": ("int4", 32), "IQ4_XS": ("int4", 32), "MXFP4": ("mxfp4", 32),
    "NVFP4": ("nvfp4", 16),
}  # fmt: skip


def tensor_bytes(kind: int, numbers: int) -> int:
    """Bytes of so many numbers; 0 for a type that is not known."""
    _, block, size = _BLOCKS.get(kind, ("", 1, 0))
    return -(-numbers // block) * size


# llama.cpp knows these families' windows by their architecture, as transformers does by the class.
_CLASSES = {
    "gemma2": "gemma2", "gemma3": "gemma3_text", "gemma3n": "gemma3n_text", "gemma4": "gemma4_text",
    "gpt-oss": "gpt_oss", "cohere2": "cohere2", "llama4": "llama4_text", "olmo3": "olmo3", "falcon-h1": "falcon_h1",
    "qwen3next": "qwen3_next", "qwen35": "qwen3_5_text", "qwen35moe": "qwen3_5_moe_text",
}  # fmt: skip
_PLAIN = {
    "embedding_length": "hidden_size",
    "embedding_length_per_layer_input": "hidden_size_per_layer_input",
    "context_length": "max_position_embeddings",
    "attention.key_length": "head_dim",
    "attention.q_lora_rank": "q_lora_rank",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.sliding_window": "sliding_window",
    "attention.key_length_swa": "swa_head_dim",
    "attention.value_length_swa": "swa_v_head_dim",
    "attention.shared_kv_layers": "num_kv_shared_layers",
    "attention.indexer.head_count": "index_n_heads",
    "attention.indexer.key_length": "index_head_dim",
    "attention.indexer.top_k": "index_topk",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "leading_dense_block_count": "first_k_dense_replace",
    "interleave_moe_layer_step": "interleave_moe_layer_step",
    "moe_latent_size": "moe_latent_size",
    "nextn_predict_layers": "num_nextn_predict_layers",
    "full_attention_interval": "full_attention_interval",
    "shortconv.l_cache": "conv_L_cache",
    "kda.head_dim": "linear_head_dim",
}
_DELTA = ("qwen3next", "qwen35", "qwen35moe")


@dataclass(frozen=True, slots=True)
class _Keys:
    """The metadata under the architecture's own prefix."""

    arch: str
    metadata: Mapping[str, Any]

    def get(self, key: str) -> Any:
        return self.metadata.get(f"{self.arch}.{key}")

    def number(self, key: str) -> int:
        """Of a list (one value a layer) the largest."""
        return max(self.numbers(key), default=0)

    def numbers(self, key: str) -> list[int]:
        value = self.get(key)
        return [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, int) and v >= 0]

    def each(self, key: str) -> list[int]:
        """One value a layer; empty when one is for all."""
        return self.numbers(key) if isinstance(self.get(key), list) else []


def shape_of(metadata: Mapping[str, Any], tensors: Sequence[TensorGroup], all_there: bool) -> ModelShape | Unknown:
    """all_there: the table of tensors was read, so what is not in it is not in the file."""
    arch = metadata.get("general.architecture")
    if not isinstance(arch, str) or not arch:
        return Unknown("", "the GGUF header names no architecture")
    keys = _Keys(arch, metadata)
    config = _config(keys)
    config["tie_word_embeddings"] = all_there and all(group.name != "output.weight" for group in tensors)
    shape = model_config.parse(json.dumps(config))
    if isinstance(shape, Unknown):
        return Unknown(arch[:40], shape.why.replace("config.json", "the GGUF header"))
    # Its tables are in fewer bits, too: the file's size tells in how many.
    shape = replace(shape, table_format="")
    return replace(shape, architecture="".join(arch.split())[:40], quantization="gguf", **_formats(tensors))


def _config(keys: _Keys) -> dict[str, Any]:
    # A damaged count must cost nothing: the reader of config.json refuses such a number of layers.
    layers = min(keys.number("block_count") - keys.number("nextn_predict_layers"), model_config.MOST_LAYERS + 1)
    plain = {name: keys.number(key) for key, name in _PLAIN.items() if keys.number(key)}
    tokens = keys.metadata.get("tokenizer.ggml.tokens")
    heads = keys.numbers("attention.head_count_kv")
    return {
        "model_type": _CLASSES.get(keys.arch, ""),
        **plain,
        "num_hidden_layers": layers,
        "num_attention_heads": keys.number("attention.head_count"),
        "num_key_value_heads": max(heads, default=0),
        "intermediate_size": keys.number("feed_forward_length"),
        "vocab_size": keys.number("vocab_size") or (tokens if isinstance(tokens, int) else 0),
        **_latent(keys),
        **_state(keys),
        **_kinds(keys, layers),
    }


def _latent(keys: _Keys) -> dict[str, Any]:
    """MLA: the lengths without `_mla` are those of the latent, which counts as one head."""
    rope, whole = keys.number("rope.dimension_count"), keys.number("attention.key_length_mla")
    value = keys.number("attention.value_length_mla")
    if keys.number("attention.kv_lora_rank"):
        whole, value = whole or keys.number("attention.key_length"), value or keys.number("attention.value_length")
        return {"qk_rope_head_dim": rope, "qk_nope_head_dim": max(whole - rope, 0), "v_head_dim": value}
    value = keys.number("attention.value_length")
    return {"v_head_dim": value} if value != keys.number("attention.key_length") else {}


def _state(keys: _Keys) -> dict[str, Any]:
    inner, heads = keys.number("ssm.inner_size"), keys.number("ssm.time_step_rank")
    groups, size, conv = (keys.number(f"ssm.{key}") for key in ("group_count", "state_size", "conv_kernel"))
    if keys.number("kda.head_dim"):
        return {"linear_num_heads": keys.number("attention.head_count"), "linear_conv_kernel_dim": conv}
    if not inner:
        return {}
    each = inner // max(heads, 1)
    if keys.arch in _DELTA:
        keyed = {"linear_num_key_heads": groups, "linear_key_head_dim": size, "linear_conv_kernel_dim": conv}
        return {**keyed, "linear_num_value_heads": heads, "linear_value_head_dim": each}
    if groups:
        sizes = {"mamba_num_heads": heads, "mamba_head_dim": each, "n_groups": groups}
        return {**sizes, "ssm_state_size": size, "conv_kernel": conv}
    hidden = keys.number("embedding_length")
    return {"mamba_expand": inner // max(hidden, 1), "mamba_d_state": size, "mamba_d_conv": conv}


def _kinds(keys: _Keys, layers: int) -> dict[str, Any]:
    """Layer by layer, where the header has it: no KV heads means a state, or a layer that is only an FFN."""
    kv, wide = keys.each("attention.head_count_kv")[:layers], keys.each("feed_forward_length")[:layers]
    marks = keys.each("attention.sliding_window_pattern")[:layers]
    if not marks and 0 not in kv:
        every = keys.number("attention.sliding_window_pattern")
        return {"sliding_window_pattern": every} if every else {}
    ffn = "moe" if keys.number("expert_count") else "mlp"
    alone = 0 in wide and 0 in kv
    kinds = ["sliding_attention" if n < len(marks) and marks[n] else "full_attention" for n in range(layers)]
    for n, heads in enumerate(kv):
        if not heads:
            kinds[n] = ffn if alone and n < len(wide) and wide[n] else "linear_attention"
    return {"layer_types": kinds, **_heads(kv, kinds)}


def _heads(kv: Sequence[int], kinds: Sequence[str]) -> dict[str, Any]:
    """KV heads of the two sorts of attention, where each layer has its own number."""
    by = {kind: max((n for n, k in zip(kv, kinds, strict=False) if k == kind), default=0) for kind in set(kinds)}
    full, window = by.get("full_attention", 0), by.get("sliding_attention", 0)
    return {name: n for name, n in (("num_key_value_heads", full), ("swa_num_key_value_heads", window)) if n}


def _formats(tensors: Sequence[TensorGroup]) -> dict[str, Any]:
    """The type that most bytes of the experts, and of the other layers, are written in."""
    layers = [group for group in tensors if group.name.startswith("blk.")]
    rest, group = _most(g for g in layers if "exps" not in g.name)
    experts, expert_group = _most(g for g in layers if "exps" in g.name)
    told = {"format": rest, "group": group}
    return told | {"expert_format": experts, "expert_group": expert_group} if experts and experts != rest else told


def _most(tensors: Any) -> tuple[str, int]:
    found: Counter[str] = Counter()
    for group in tensors:
        found[group.dtype] += group.bytes
    return FORMATS.get(found.most_common(1)[0][0], ("", 0)) if found else ("", 0)
