"""The state that a model's state layers keep for a sequence instead of keys and values: a convolution's tail and a
matrix.

Formulas: vLLM's MambaStateShapeCalculator (0.19.0 to 0.33.0), read for what each kind keeps. Without all of the sizes
that a formula needs its result is 0: half a state would pass for a small one.
"""

from math import prod
from typing import Any

from sparkwright.facts.model_layers import Layers
from sparkwright.facts.model_values import (
    Config,
    first_mapping,
    first_text,
    mappings,
    number,
    number_of,
    numbers,
    spellings,
    texts_of,
)

_EXPERT_LAYERS = ("sparse", "moe", "hash_moe")
_LIGHTNING = ("attn_type_list", "layer_group_size", "linear_attn_alpha_factor")
_FORMATS = {"float32": "fp32", "bfloat16": "bf16", "float16": "bf16"}


def ffn_fields(config: Config, layers: Layers, count: int) -> dict[str, Any]:
    """ModelShape's fields about FFNs."""
    alone = layers.count("sparse", "dense")
    dense = _dense(config)
    if config.get("use_double_wide_mlp") is True and count:
        # Gemma's layers that share another's keys have an FFN twice as wide: the mean of all.
        dense = dense * (count + min(count, number(config, "num_kv_shared_layers"))) // count
    common = {"single_blocks": bool(alone), "ffn_layers": alone, "ungated": _ungated(config)}
    none = config.get("enable_moe_block") is False or config.get("is_moe") is False
    if (experts := number_of(config, "experts")) < 2 or none:
        return {"intermediate": dense, **common}
    own, beside = number_of(config, "expert_ffn"), number_of(config, "ffn_beside_experts")
    width = own if own and not number(config, "dense_intermediate_size") else dense
    sparse = layers.count("sparse") if alone else _sparse_layers(config, count)
    if each := number(config, "_ffns_per_layer"):  # LongCat: so many dense ones next to the experts
        common["ffn_layers"] = each * count + sparse
    return {
        # Without a width of their own the experts have this one; then layers without experts have it, too.
        "intermediate": beside or (dense if own or (sparse < count and not alone) else 0),
        "experts": experts,
        "experts_per_token": number_of(config, "experts_per_token"),
        "expert_intermediate": width,
        "expert_hidden": number_of(config, "expert_hidden"),
        "shared_experts": _shared(config, width),
        "moe_layers": sparse,
        # Shared ones are counted in widths of a routed one: a rough count where that is no whole number.
        "loose": bool(width and number_of(config, "shared_ffn") % width),
        **common,
    }


def _dense(config: Config) -> int:
    """Width of a dense FFN; the mean where layers differ."""
    each = next((widths for key in spellings("ffn") if (widths := numbers(config.get(key)))), [])
    width = number_of(config, "ffn") or _searched(config) or sum(each) // max(1, len(each))
    if config.get("block_auto_adjust_ff_dim") is True:  # LFM2: two thirds, times a factor, up to a whole multiple
        factor, step = config.get("block_ffn_dim_multiplier"), number(config, "block_multiple_of") or 1
        scaled = int(width * 2 / 3 * (factor if isinstance(factor, int | float) and 0 < factor < 100 else 1))
        return -(-scaled // step) * step
    return width or number(config, "_ffn_times") * number_of(config, "hidden")


def _searched(config: Config) -> int:
    """The mean width of a searched model's FFNs (Nemotron NAS): a factor times two thirds of twice the hidden width."""
    found = [first_mapping(block, "ffn").get("ffn_mult") for block in mappings(config.get("block_configs"))]
    factors = [float(f) for f in found if isinstance(f, int | float) and 0 < f < 100]
    return int(sum(factors) / len(found) * number(config, "hidden_size") * 2 / 3) if factors else 0


def _ungated(config: Config) -> bool:
    """True for an FFN of up and down only: so it is with every activation but SiLU, unless the class has a gate.

    True of all but 9 of the 180 causal classes of transformers 5.24; these have `_gated` in models.toml.
    """
    kind = first_text(config, *spellings("activation"))
    return bool(kind) and not kind.startswith(("silu", "swi")) and config.get("_gated") is not True


def _shared(config: Config, width: int) -> int:
    """Shared experts, counted in widths of a routed one. Gemma 4 has its dense FFN next to the experts."""
    count = number_of(config, "shared_experts")
    if config.get("enable_moe_block") is True:
        return -(-number_of(config, "ffn") // max(width, 1))
    whole = number_of(config, "shared_ffn") * max(count, 1)
    # Llama 4 has one beside the experts of each layer, and no key for it.
    return -(-whole // max(width, 1)) or count or int("interleave_moe_layer_step" in config)


def _sparse_layers(config: Config, count: int) -> int:
    """Layers with experts: the keys name which are dense, each family in its own way."""
    if kinds := texts_of(config.get("mlp_layer_types")):
        return sum(1 for kind in kinds[:count] if kind in _EXPERT_LAYERS)
    if chosen := numbers(config.get("moe_layers")) or _enumerated(config):
        return sum(1 for n in chosen if n < count)
    marks = config.get("moe_layer_freq")
    if isinstance(marks, list):
        return sum(1 for mark in marks[:count] if mark)
    if period := number(config, "expert_layer_period"):
        offset = number(config, "expert_layer_offset")
        return sum(1 for n in range(count) if (n - offset) % period == 0)
    first = number(config, "first_k_dense_replace", "moe_layer_start_index", "num_dense_layers", "dense_mlp_idx")
    step = number(config, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "moe_layer_freq")
    only = numbers(config.get("mlp_only_layers"))
    # decoder_sparse_step counts from one, moe_layer_freq from zero (and then every step-th from there).
    shift = 0 if "moe_layer_freq" in config else 1
    return sum(1 for n in range(count) if n >= first and n not in only and (n + shift) % (step or 1) == 0)


def _enumerated(config: Config) -> list[int]:
    """Step writes the layers into one string: `3,4,5`."""
    return [
        int(n) for n in first_text(config, "moe_layers_enum").split(",") if n.strip().isascii() and n.strip().isdigit()
    ]


def state_fields(config: Config, layers: Layers) -> dict[str, Any]:
    """ModelShape's fields about states."""
    found = next(filter(None, (kind(config) for kind in (_gdn, _kda, _mamba2, _mamba1, _sconv, _lightning))), {})
    count = layers.count("state", "both")
    if not count:
        return found if found.get("state_kind") == "sconv" and layers.sorts else {}
    written = _FORMATS.get(first_text(config, "mamba_ssm_dtype", "mamba_ssm_cache_dtype"), "")
    return {"state_layers": count, "state_format": written, **found}


def _gdn(config: Config) -> dict[str, Any]:
    """Gated DeltaNet (Qwen3-Next and later): the convolution runs over queries, keys and values."""
    many, value = number(config, "linear_num_value_heads"), number(config, "linear_value_head_dim")
    heads, key = number(config, "linear_num_key_heads"), number(config, "linear_key_head_dim")
    if not many:
        return {}
    whole = heads and key and value
    return {
        "state_kind": "gdn",
        "state_heads": heads,
        "state_width": many * value,
        "state_conv": number(config, "linear_conv_kernel_dim"),
        "state_conv_width": 2 * heads * key + many * value if whole else 0,
        "state_matrix": many * key * value,
    }


def _kda(config: Config) -> dict[str, Any]:
    """Kimi Delta Attention (Kimi-Linear, Kimi-K3, GLM-5.3): keys, queries and values of one size."""
    inner = first_mapping(config, "linear_attn_config")
    heads = number(inner, "num_heads") or number(config, "linear_num_heads")
    width = number(inner, "head_dim") or number(config, "linear_head_dim")
    if not heads:
        return {}
    return {
        "state_kind": "kda",
        "state_heads": heads,
        "state_width": heads * width,
        "state_conv": number(inner, "short_conv_kernel_size") or number(config, "linear_conv_kernel_dim"),
        "state_conv_width": 3 * heads * width,
        "state_matrix": heads * width * width,
    }


def _mamba2(config: Config) -> dict[str, Any]:
    """Mamba-2: the convolution runs over the inner vector and, for each group, two vectors as wide as the state."""
    heads = number(config, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads")
    if not heads:
        return {}
    inner = number(config, "expand", "mamba_expand") * number(config, "hidden_size")
    each = number(config, "mamba_head_dim", "mamba_d_head", "mamba_headdim") or inner // heads
    groups, size = number(config, "n_groups", "mamba_n_groups", "mamba_ngroups"), _state_size(config)
    return {
        "state_kind": "mamba2",
        "state_heads": groups,
        "state_width": heads * each,
        "state_conv": number(config, "conv_kernel", "mamba_d_conv"),
        "state_conv_width": heads * each + 2 * groups * size if groups and size else 0,
        "state_matrix": heads * each * size,
    }


def _mamba1(config: Config) -> dict[str, Any]:
    inner = number(config, "mamba_expand") * number(config, "hidden_size")
    size = _state_size(config)
    if not inner or not size:
        return {}
    return {
        "state_kind": "mamba1",
        "state_width": inner,
        "state_conv": number(config, "mamba_d_conv"),
        "state_conv_width": inner,
        "state_matrix": inner * size,
    }


def _state_size(config: Config) -> int:
    return number(config, "ssm_state_size", "mamba_d_state")


def _sconv(config: Config) -> dict[str, Any]:
    """Short convolutions: LFM2's layers of them, Inkling's four next to each attention (its K, V, output and FFN)."""
    hidden, kernel = number(config, "hidden_size"), number(config, "conv_L_cache")
    if kernel:
        width = number(config, "conv_dim") or hidden
        return {"state_kind": "sconv", "state_width": width, "state_conv": kernel, "state_conv_width": width}
    beside = number(config, "sconv_kernel_size")
    heads, each = number(config, "num_key_value_heads"), number(config, "head_dim")
    width = 2 * hidden + 2 * heads * each if prod((hidden, heads, each)) else 0
    return {"state_kind": "sconv", "state_conv": beside, "state_conv_width": width} if beside else {}


def _lightning(config: Config) -> dict[str, Any]:
    """MiniMax-01 and Bailing: linear attention with a matrix a head and no convolution."""
    heads = number(config, "num_attention_heads")
    each = number(config, "head_dim") or number(config, "hidden_size") // max(heads, 1)
    if not any(key in config for key in _LIGHTNING):
        return {}
    sizes = {"state_heads": heads, "state_width": heads * each, "state_matrix": heads * each * each}
    return {"state_kind": "lightning", **sizes}
