"""A model's published dimensions, one line of models.jsonl -> the keys that its config.json would have.

So the evaluation goes the product's own way: facts/model_config.py reads the keys, nothing else knows the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Any]
Config = dict[str, Any]

_SAME = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "q_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads", "head_dim": "head_dim", "kv_lora_rank": "kv_lora_rank",
    "qk_rope_head_dim": "qk_rope_head_dim", "index_head_dim": "index_head_dim", "vocab": "vocab_size",
    "experts": "n_routed_experts", "experts_per_token": "num_experts_per_tok",
    "moe_intermediate": "moe_intermediate_size", "shared_experts": "n_shared_experts",
    "mtp_layers": "num_nextn_predict_layers", "max_position": "max_position_embeddings",
}  # fmt: skip
# What models.jsonl keeps under `compression`, and how configs call it.
_SPECIAL = {
    "compress_ratios": "compress_ratios", "index_n_heads": "index_n_heads", "index_topk": "index_topk",
    "index_heads": "index_n_heads", "q_lora_rank": "q_lora_rank", "qk_nope_head_dim": "qk_nope_head_dim",
    "v_head_dim": "v_head_dim", "first_k_dense": "first_k_dense_replace", "dense_layers": "first_k_dense_replace",
    "dense_intermediate": "intermediate_size", "mamba_heads": "mamba_num_heads", "mamba_head_dim": "mamba_head_dim",
    "ssm_state": "ssm_state_size", "n_groups": "n_groups", "conv_kernel": "conv_kernel",
    "pattern": "hybrid_override_pattern", "moe_latent_size": "moe_latent_size",
    "shared_expert_intermediate": "moe_shared_expert_intermediate_size",
    "global_kv_heads": "num_global_key_value_heads", "global_head_dim": "global_head_dim",
    "kv_source_layer_ids": "kv_source_layer_ids", "index_source_layer_ids": "index_source_layer_ids",
}  # fmt: skip
_KINDS = {"S": "sliding_attention", "F": "full_attention", "L": "linear_attention"}
_LETTERS = re.compile(r"[ME*-]{20,}")
_WINDOW = re.compile(r"window (\d+)")


def as_config(facts: Facts) -> Config:
    """Keys for what the line states; without layers or heads the reader of configs reports that they are missing."""
    special = facts.get("compression") or {}
    config: Config = {key: facts[name] for name, key in _SAME.items() if facts.get(name) is not None}
    config |= {key: special[name] for name, key in _SPECIAL.items() if special.get(name) is not None}
    config["architectures"] = [str(facts.get("architecture") or "").split(" ")[0]]
    config["torch_dtype"] = "bfloat16"
    return config | _kinds(facts, str(facts.get("attention") or ""))


def _kinds(facts: Facts, attention: str) -> Config:
    """The kinds of layers in the line's words; they are spread evenly, as these families do."""
    letters = _LETTERS.search(attention)
    if letters:
        return {"hybrid_override_pattern": letters[0]}
    layers, full = facts.get("layers") or 0, facts.get("full_attention_layers") or 0
    told = facts.get("compression") or {}
    if not 0 < full < layers or "pattern" in told or "compress" in attention:
        return {}
    if attention.startswith("hybrid-linear"):
        return {"layer_types": _spread(layers, full, "linear_attention")}
    window = facts.get("sliding_window") or int(next(iter(_WINDOW.findall(attention)), 0))
    return {"layer_types": _spread(layers, full, "sliding_attention"), "sliding_window": window} if window else {}


def _spread(layers: int, full: int, other: str) -> list[str]:
    return ["full_attention" if (n + 1) * full // layers > n * full // layers else other for n in range(layers)]


def expanded(config: Facts) -> Config:
    """The config with layer_types spelled out if they are repeating letters: `SSSSSF`; null removes a key."""
    said = {key: value for key, value in config.items() if value is not None}
    letters = said.get("layer_types")
    if isinstance(letters, str):
        layers = range(int(said.get("num_hidden_layers", 0)))
        said["layer_types"] = [_KINDS[letters[n % len(letters)]] for n in layers]
    return said
