"""A model's attention from its config.json: heads and widths, windows with dimensions of their own, caches shared."""

from collections.abc import Mapping
from typing import Any

from sparkwright.facts.config_values import Config, number, numbers, part
from sparkwright.facts.model_layers import Layers, groups_of_heads

HEADS = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "num_attention_groups", "multi_query_group_num")


def attention(config: Config, layers: Layers) -> dict[str, Any]:
    """ModelShape's fields about attention. Heads that the config does not count are 0."""
    rope, rank, nope = (number(config, key) for key in ("qk_rope_head_dim", "kv_lora_rank", "qk_nope_head_dim"))
    heads = number(config, *HEADS)
    # Written nowhere: as many as queries, the default of the classes that have the key at all.
    kv_heads = 1 if rank or config.get("multi_query") is True else number(config, *_KV_HEADS) or _grouped(config, heads)
    width = number(config, "head_dim") or number(config, "hidden_size", "n_embd") // max(heads, 1)
    full_heads, full_width = _full(config, layers, kv_heads, width)
    return {
        "heads": heads,
        "kv_heads": full_heads,
        "head_dim": nope + rope if rank and nope else full_width,
        "value_dim": number(config, "v_head_dim"),
        "latent": rank + rope if rank else 0,
        "rope_dim": rope,
        "query_rank": number(config, "q_lora_rank"),
        "output_rank": number(config, "o_lora_rank"),
        "output_groups": number(config, "o_groups"),
        **_windows(config, layers, (full_heads, full_width), (kv_heads, width)),
        **_shared(config, layers),
    }


def _grouped(config: Config, heads: int) -> int:
    """As many as the block with most of them, where each says how many queries share one."""
    groups = [group for group in groups_of_heads(config) if group]
    return heads // min(groups) if groups else heads


def _full(config: Config, layers: Layers, kv_heads: int, width: int) -> tuple[int, int]:
    """(KV heads, width) of layers that see everything: Gemma 4 gives these own keys, or a table by layer."""
    own = _table(config, layers)
    shared = config.get("attention_k_eq_v") is True
    heads = number(own, "num_key_value_heads") or (number(config, "num_global_key_value_heads") if shared else 0)
    return heads or kv_heads, number(own, "head_dim") or number(config, "global_head_dim") or width


def _table(config: Config, layers: Layers) -> Config:
    """What `per_layer_config` says of the first layer that sees everything."""
    table = part(config, "per_layer_config")
    full = (str(n) for n, sort in enumerate(layers.sorts) if sort == "full")
    return next((row for n in full if isinstance(row := table.get(n), Mapping)), {})


def _windows(config: Config, layers: Layers, full: tuple[int, int], plain: tuple[int, int]) -> dict[str, Any]:
    """The windows' own dimensions, each 0 where it is as in the other layers."""
    if not layers.count("window"):
        return {}
    other = part(config, "attention_other_setting")
    heads = number(config, "swa_num_key_value_heads") or number(other, "num_attention_groups") or plain[0]
    width = number(config, "swa_head_dim") or number(other, "head_dim") or plain[1]
    value = number(config, "swa_v_head_dim")
    return {
        "window": number(config, "sliding_window", "sliding_window_size", "attention_chunk_size"),
        "window_kv_heads": heads if heads != full[0] else 0,
        "window_head_dim": width if width != full[1] else 0,
        "window_value_dim": value if value != number(config, "v_head_dim") else 0,
    }


def _shared(config: Config, layers: Layers) -> dict[str, Any]:
    """Layers without a cache of their own: the last ones (Gemma), or all that are no source (DeepSeek-V4.1).

    Mistral-Large-4 names a source for each layer, mostly itself.
    """
    if sources := tuple(numbers(config.get("kv_source_layer_ids"))):
        users = sum(1 for n, ratio in enumerate(layers.compress) if ratio and n not in sources)
        return {"kv_sources": sources, "shared_kv_layers": users, "shared_full_layers": users}
    if each := numbers(config.get("kv_source_layers")):
        users = sum(1 for n, source in enumerate(each) if n != source)
        return {"shared_kv_layers": users, "shared_full_layers": users}
    last = number(config, "num_kv_shared_layers")
    full = layers.sorts[-last:].count("full") if layers.sorts and last else last
    return {"shared_kv_layers": last, "shared_full_layers": full}
