"""The lightning indexer of sparse attention: which layers keep its rows, and of what sort.

Sources: the caches that vLLM 0.33.0 makes for DeepSeek-V3.2 to V4.1, GLM-5.2 and 5.3, HY-V4 (dsa), MiniMax-M3 (msa) and
Qwen's QSA (qsa). A layer that reuses another one's choice keeps no rows.
"""

from typing import Any

from sparkwright.facts.config_values import Config, number, numbers, part, word, words
from sparkwright.facts.model_layers import Layers


def index(config: Config, layers: Layers, count: int) -> dict[str, Any]:
    """ModelShape's fields about the indexer; none without one."""
    return _dsa(config, layers, count) or _qsa(config, layers, count) or _msa(config) or {}


def _dsa(config: Config, layers: Layers, count: int) -> dict[str, Any]:
    width, chosen = number(config, "index_head_dim"), number(config, "index_topk")
    if not width or not chosen:
        return {}
    return {
        "index_kind": "dsa",
        "index_layers": _keeping(config, layers, count),
        "index_heads": number(config, "index_n_heads"),
        "index_dim": width,
        "index_topk": chosen,
        "index_ratio": number(config, "index_kpool"),
    }


def _keeping(config: Config, layers: Layers, count: int) -> int:
    """Layers with rows of their own."""
    if sources := numbers(config.get("kv_source_layer_ids")):
        return len(sources)
    if layers.compress:
        # DeepSeek-V4 indexes its finer entries; the coarse ones (128 tokens each) are all read.
        return layers.compress.count(min((ratio for ratio in layers.compress if ratio > 1), default=1))
    sparse = [("sparse" in kind or "indexed" in kind) for kind in layers.words]
    full = [sort in ("full", "both") for sort in layers.sorts] or [True] * count
    fresh = _fresh(config, count)
    return sum(1 for has, own in zip(sparse if any(sparse) else full, fresh, strict=False) if has and own)


def _fresh(config: Config, count: int) -> list[bool]:
    """Layer by layer, whether it chooses for itself: three ways to write it down, `index_topk_freq` the oldest."""
    if types := words(config.get("indexer_types")):
        return [kind == "full" for kind in types]
    if pattern := word(config, "index_topk_pattern"):
        return [letter == "F" for letter in pattern]
    every, offset = number(config, "index_topk_freq") or 1, config.get("index_skip_topk_offset", 2)
    offset = offset if isinstance(offset, int) else 2
    return [max(n - offset + 1, 0) % every == 0 for n in range(count)]


def _qsa(config: Config, layers: Layers, count: int) -> dict[str, Any]:
    width = number(config, "indexer_head_dim")
    if not width:
        return {}
    return {
        "index_kind": "qsa",
        "index_layers": layers.count("full", "both") or count,
        "index_heads": number(config, "indexer_n_heads"),
        "index_dim": width,
        "index_topk": number(config, "indexer_budget"),
        "index_ratio": number(config, "indexer_compress_ratio"),
    }


def _msa(config: Config) -> dict[str, Any]:
    """Block-sparse attention: whole blocks of tokens are chosen, by rows as plain as keys."""
    sparse = part(config, "sparse_attention_config")
    width, marks = number(sparse, "sparse_index_dim"), numbers(sparse.get("sparse_attention_freq"))
    if not width:
        return {}
    return {
        "index_kind": "msa",
        "index_layers": sum(1 for mark in marks if mark),
        "index_heads": number(sparse, "sparse_num_index_heads"),
        "index_dim": width,
        "index_topk": number(sparse, "sparse_topk_blocks") * number(sparse, "sparse_block_size"),
    }
