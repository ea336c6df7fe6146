"""A model's feed-forward layers from its config.json: which have experts, how many, how wide."""

from typing import Any

from sparkwright.facts.config_values import Config, mappings, number, numbers, part, word, words
from sparkwright.facts.model_layers import Layers

_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_WORKING = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k", "top_k")
_EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
_SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
_SHARED_WIDTH = (
    "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim",
    "shared_intermediate_size",
)  # fmt: skip
_DENSE = ("intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim")
_DENSE_BESIDE = ("dense_intermediate_size", "intermediate_size_mlp")
_NARROW = ("moe_latent_size", "routed_expert_hidden_size")
_EXPERT_LAYERS = ("sparse", "moe", "hash_moe")


def ffn(config: Config, layers: Layers, count: int) -> dict[str, Any]:
    """ModelShape's fields about FFNs."""
    alone = layers.count("sparse", "dense")
    dense = number(config, *_DENSE) or _searched(config)
    common = {"single_blocks": bool(alone), "ffn_layers": alone, "ungated": _ungated(config)}
    if (experts := number(config, *_EXPERTS)) < 2 or config.get("enable_moe_block") is False:
        return {"intermediate": dense, **common}
    own, beside = number(config, *_EXPERT_WIDTH), number(config, *_DENSE_BESIDE)
    width = own if own and not number(config, "dense_intermediate_size") else dense
    return {
        # Without a width of their own the experts have this one, and there is no dense FFN.
        "intermediate": beside or (dense if own else 0),
        "experts": experts,
        "experts_per_token": number(config, *_WORKING),
        "expert_intermediate": width,
        "expert_hidden": number(config, *_NARROW),
        "shared_experts": _shared(config, width),
        "moe_layers": layers.count("sparse") if alone else _sparse_layers(config, count),
        **common,
    }


def _searched(config: Config) -> int:
    """The mean width of a searched model's FFNs (Nemotron NAS): a factor times two thirds of twice the hidden width."""
    found = [part(block, "ffn").get("ffn_mult") for block in mappings(config.get("block_configs"))]
    factors = [float(f) for f in found if isinstance(f, int | float) and 0 < f < 100]
    return int(sum(factors) / len(found) * number(config, "hidden_size") * 2 / 3) if factors else 0


def _ungated(config: Config) -> bool:
    """Squared ReLU goes without a gate (Nemotron): up and down only."""
    return word(config, "mlp_hidden_act", "hidden_act", "hidden_activation") == "relu2"


def _shared(config: Config, width: int) -> int:
    """Shared experts, counted in widths of a routed one. Gemma 4 has its dense FFN beside the experts."""
    count = number(config, *_SHARED)
    if config.get("enable_moe_block") is True:
        return -(-number(config, *_DENSE) // max(width, 1))
    whole = number(config, *_SHARED_WIDTH) * max(count, 1)
    # Llama 4 has one beside the experts of each layer, and no key for it.
    return -(-whole // max(width, 1)) or count or int("interleave_moe_layer_step" in config)


def _sparse_layers(config: Config, count: int) -> int:
    """Layers with experts: the keys say which are dense, each family in its own way."""
    if kinds := words(config.get("mlp_layer_types")):
        return sum(1 for kind in kinds[:count] if kind in _EXPERT_LAYERS)
    if chosen := numbers(config.get("moe_layers")) or _enumerated(config):
        return sum(1 for n in chosen if n < count)
    marks = config.get("moe_layer_freq")
    if isinstance(marks, list):
        return sum(1 for mark in marks[:count] if mark)
    first = number(config, "first_k_dense_replace", "moe_layer_start_index", "num_dense_layers", "dense_mlp_idx")
    step = number(config, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "moe_layer_freq")
    only = numbers(config.get("mlp_only_layers"))
    # decoder_sparse_step counts from one, moe_layer_freq from zero (and then every step-th from there).
    shift = 0 if "moe_layer_freq" in config else 1
    return sum(1 for n in range(count) if n >= first and n not in only and (n + shift) % (step or 1) == 0)


def _enumerated(config: Config) -> list[int]:
    """Step writes the layers into one string: `3,4,5`."""
    return [int(n) for n in word(config, "moe_layers_enum").split(",") if n.strip().isascii() and n.strip().isdigit()]
