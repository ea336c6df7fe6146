"""What a model's state layers keep for a sequence instead of keys and values: a convolution's tail and a matrix.

Formulas: vLLM's MambaStateShapeCalculator (0.19.0 to 0.33.0), read for what each kind keeps. Without all of the sizes
that a formula needs its result is 0: half a state would pass for a small one.
"""

from math import prod
from typing import Any

from sparkwright.facts.config_values import Config, number, part, word
from sparkwright.facts.model_layers import Layers

_LIGHTNING = ("attn_type_list", "layer_group_size", "linear_attn_alpha_factor")
_FORMATS = {"float32": "fp32", "bfloat16": "bf16", "float16": "bf16"}


def state(config: Config, layers: Layers) -> dict[str, Any]:
    """ModelShape's fields about states."""
    found = next(filter(None, (kind(config) for kind in (_gdn, _kda, _mamba2, _mamba1, _sconv, _lightning))), {})
    count = layers.count("state", "both")
    if not count:
        return found if found.get("state_kind") == "sconv" and layers.sorts else {}
    written = _FORMATS.get(word(config, "mamba_ssm_dtype", "mamba_ssm_cache_dtype"), "")
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
    inner = part(config, "linear_attn_config")
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
    """Short convolutions: LFM2's layers of them, Inkling's four beside each attention (its K, V, output and FFN)."""
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
    heads, each = number(config, "num_attention_heads"), number(config, "head_dim")
    if not any(key in config for key in _LIGHTNING):
        return {}
    sizes = {"state_heads": heads, "state_width": heads * each, "state_matrix": heads * each * each}
    return {"state_kind": "lightning", **sizes}
