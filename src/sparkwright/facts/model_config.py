"""config.json of a model, of any family that today's engines serve -> ModelShape. Never from a name.

Keys and what their absence means: the configuration classes of Hugging Face transformers, vLLM 0.33.0 and SGLang
0.5.23, read as files of the families in tests/data/models. What has no key stays 0 or ''; without layers and heads the
model is Unknown, and so it is with a kind of layer that is not known here.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.values import replace
from sparkwright.facts import model_layers
from sparkwright.facts.model_layers import Layers, groups_of_heads
from sparkwright.facts.model_state import ffn_fields, state_fields
from sparkwright.facts.model_unread import not_counted, unasked, unexplained_keys
from sparkwright.facts.model_values import (
    Config,
    WatchedConfig,
    complete,
    encoder,
    first_mapping,
    first_text,
    number,
    number_of,
    numbers,
    spellings,
    tables,
    texts_of,
)
from sparkwright.facts.model_weights import weights

_DEEPEST = 8  # levels of configurations in each other that are read
_DSPARK = ("dspark_block_size", "dspark_target_layer_ids")
_SENSES = re.compile(r"(vision|audio|visual|speech|sound)(_tower|_encoder)?(_config|_n_layers)")
# Kinds of rope scaling whose factor an engine applies to the length (vLLM 0.21.0, transformers_utils/config.py).
_STRETCHING = ("yarn", "linear", "dynamic", "deepseek_yarn")
_FARTHEST = 1024.0
_SHOWN = 200
_MOST_KEYS = 2000  # several times the most of any published model
MOST_LAYERS = 10_000  # they are counted one by one
_SHOWN_DIGITS = 40
_MOST_POSITIONS = 2**30
_UNLIMITED = "model_max_length"  # a tokenizer's key: 10**30 says that it knows no limit


@cache
def _largest() -> dict[str, int]:
    """Key -> several times its largest value in any published model; beyond it, or below 0, a number is a mistake."""
    return {
        **dict.fromkeys(spellings("layers"), 10**15),  # MOST_LAYERS has a sentence of its own
        **dict.fromkeys((*spellings("heads"), *spellings("kv_heads")), 2**20),
        **dict.fromkeys((*spellings("hidden"), *spellings("ffn"), *spellings("expert_ffn"), "head_dim"), 2**24),
        **dict.fromkeys(spellings("experts"), 2**20),
        "vocab_size": 2**32,
        **dict.fromkeys((key for key in spellings("positions") if key != _UNLIMITED), _MOST_POSITIONS),
    }


def indexer_fields(config: Config, layers: Layers, count: int) -> dict[str, Any]:
    """ModelShape's fields about the indexer; none without one."""
    return _dsa(config, layers, count) or _qsa(config, layers, count) or _msa(config, count) or {}


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
    if types := texts_of(config.get("indexer_types")):
        return [kind == "full" for kind in types]
    if pattern := first_text(config, "index_topk_pattern"):
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


def _msa(config: Config, count: int) -> dict[str, Any]:
    """Block-sparse attention: whole blocks of tokens are chosen, by rows as plain as keys."""
    sparse = first_mapping(config, "sparse_attention_config")
    width, marks = number(sparse, "sparse_index_dim"), numbers(sparse.get("sparse_attention_freq"))
    if not width:
        return {}
    return {
        "index_kind": "msa",
        "index_layers": sum(1 for mark in marks[:count] if mark),
        "index_heads": number(sparse, "sparse_num_index_heads"),
        "index_dim": width,
        "index_topk": number(sparse, "sparse_topk_blocks") * number(sparse, "sparse_block_size"),
    }


def attention(config: Config, layers: Layers) -> dict[str, Any]:
    """ModelShape's fields about attention. Heads that the config does not count are 0."""
    rope, rank, nope = (number(config, key) for key in ("qk_rope_head_dim", "kv_lora_rank", "qk_nope_head_dim"))
    heads = number_of(config, "heads")
    # Written nowhere: as many as queries, the default of the classes that have the key at all.
    kv_heads = (
        1 if rank or config.get("multi_query") is True else number_of(config, "kv_heads") or _grouped(config, heads)
    )
    width = number(config, "head_dim", "attention_head_dim") or number_of(config, "hidden") // max(heads, 1)
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
        "output_gate": config.get("attn_output_gate") is True,
        "output_groups": number(config, "o_groups"),
        **_windows(config, layers, (full_heads, full_width), (kv_heads, width)),
        **_shared(config, layers),
    }


def _grouped(config: Config, heads: int) -> int:
    """The KV heads of the block with most of them, if each block states how many queries share one."""
    groups = [group for group in groups_of_heads(config) if group]
    return heads // min(groups) if groups else heads


def _full(config: Config, layers: Layers, kv_heads: int, width: int) -> tuple[int, int]:
    """(KV heads, width) of layers that see everything: Gemma 4 gives these own keys, or a table by layer."""
    # What `per_layer_config` has of the first layer that sees everything.
    table = first_mapping(config, "per_layer_config")
    full = (str(n) for n, sort in enumerate(layers.sorts) if sort == "full")
    own = next((row for n in full if isinstance(row := table.get(n), Mapping)), {})
    shared = config.get("attention_k_eq_v") is True
    heads = number(own, "num_key_value_heads") or (number(config, "num_global_key_value_heads") if shared else 0)
    return heads or kv_heads, number(own, "head_dim") or number(config, "global_head_dim") or width


def _windows(config: Config, layers: Layers, full: tuple[int, int], plain: tuple[int, int]) -> dict[str, Any]:
    """The windows' own dimensions, each 0 where it is as in the other layers."""
    if not layers.count("window"):
        return {}
    other = first_mapping(config, "attention_other_setting")
    heads = number(config, "swa_num_key_value_heads") or number(other, "num_attention_groups") or plain[0]
    width = number(config, "swa_head_dim") or number(other, "head_dim") or plain[1]
    value = number(config, "swa_v_head_dim")
    each = numbers(config.get("num_attention_heads_per_layer"))
    listed = [count for count, sort in zip(each, layers.sorts, strict=False) if sort == "window"]
    queries = (
        number(config, "swa_num_attention_heads") or number(other, "num_attention_heads") or max(listed, default=0)
    )
    return {
        "window_heads": queries if queries != number_of(config, "heads") else 0,
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


def parse(text: str, quantization: str = "") -> ModelShape | Unknown:
    """The shape, or Unknown with what is missing. Never raises.

    quantization: of hf_quant_config.json, where ModelOpt's older files keep what config.json lacks.
    """
    return _parsed(text, quantization)[0]


def unread(text: str) -> tuple[str, ...]:
    """Keys of the config, or of its part about text, with a value that nothing asked for; sorted."""
    config = _parsed(text, "")[1]
    return unasked(config) if config else ()


def odd_keys(text: str) -> list[str]:
    """The keys of a config that are not understood, and may change something."""
    config = _parsed(text, "")[1]
    return unexplained_keys(config) if config else []


def _parsed(text: str, quantization: str) -> tuple[ModelShape | Unknown, WatchedConfig | None]:
    top = mapping(text)
    if isinstance(top, Unknown):
        return top, None
    beside = mapping(quantization)
    if isinstance(beside, Mapping) and not first_mapping(top, "quantization_config"):
        top = {**top, "quantization_config": {"quant_method": "modelopt", **beside}}
    said = {key: value for key, value in _language(top).items() if value is not None}
    config = WatchedConfig(complete({**_common(top), **said}))
    count = number_of(config, "layers") or model_layers.listed(config)
    if why := _impossible(config, count):
        return Unknown(_architecture(top), f"config.json {why}"), config
    layers = model_layers.read(config, count)
    if why := _odd_layers(config, layers, count):
        return Unknown(_architecture(top), f"config.json {why}"), config
    shape = _shape(top, config, layers, count)
    return replace(shape, **not_counted(config, shape)), config


def _impossible(config: WatchedConfig, count: int) -> str:
    """The reason why no model has such counts; '' if they are possible."""
    for key, most in _largest().items():
        value = config.peek().get(key)
        if isinstance(value, int) and not isinstance(value, bool) and not 0 <= value <= most:
            return f"has {key} {f'{value:,}'[:_SHOWN_DIGITS]}; no model has that"
    if not count or not number_of(config, "heads"):
        return "has neither the number of layers nor of heads"
    return f"has more than {MOST_LAYERS} layers; no model has so many" if count > MOST_LAYERS else ""


def _odd_layers(config: Config, layers: Layers, count: int) -> str:
    if layers.odd:
        return f"names a kind of layer that is not known here: {layers.odd[:40]}"
    short = model_layers.short_list(config, count)
    return f"contradicts itself: {count} layers, and {short} has fewer" if short else ""


def mapping(text: str) -> Config | Unknown:
    """The JSON object, or Unknown with what it is instead."""
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return Unknown(text[:_SHOWN], "config.json is no JSON")
    if not isinstance(top, Mapping):
        return Unknown(text[:_SHOWN], "config.json is no mapping")
    if len(top) > _MOST_KEYS:
        return Unknown(text[:_SHOWN], f"config.json has {len(top):,} keys; no model has so many")
    return top


def _shape(top: Config, config: Config, layers: Layers, count: int) -> ModelShape:
    drafts = number_of(config, "draft_layers")
    return ModelShape(
        architecture=_architecture(top),
        layers=count,
        hidden=number_of(config, "hidden"),
        vocab=number(config, "vocab_size"),
        positions=_positions(config),
        tied=bool(config.get("tie_word_embeddings", False)),
        mtp_layers=drafts,
        draft_architecture="DSpark" if any(config.get(key) for key in _DSPARK) else "MTP" if drafts else "",
        senses=bool(senses := [value for key, value in top.items() if _SENSES.fullmatch(key) and value]),
        encoder=sum(encoder(value) for value in senses if isinstance(value, Mapping)),
        full_layers=layers.count("full", "both") or number(config, "_attentions_per_layer") * count,
        window_layers=layers.count("window"),
        compress=layers.compress,
        **attention(config, layers),
        **indexer_fields(config, layers, count),
        **state_fields(config, layers),
        **ffn_fields(config, layers, count),
        **tables(config),
        **weights(top, config, count),
    )


def _language(top: Config) -> Config:
    """The part that is about text: models that also see or hear nest it, a few levels deep."""
    for _ in range(_DEEPEST):
        inner = first_mapping(top, *spellings("language"))
        if not inner or number_of(top, "layers"):
            break
        top = inner
    return top


def _common(top: Config) -> Config:
    """Keys that models of several parts may have once for all of them."""
    return {key: top[key] for key in ("tie_word_embeddings", "vocab_size", "torch_dtype", "dtype") if key in top}


def _positions(config: Config) -> int:
    """The positions as vLLM derives them: if the scaling starts from a length of its own, that times its factor."""
    plain = number_of(config, "positions")
    if not 0 <= plain <= _MOST_POSITIONS:
        return 0
    scaling = first_mapping(config, "rope_scaling") or first_mapping(config, "rope_parameters")
    factor = scaling.get("factor")
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind not in _STRETCHING or not isinstance(factor, int | float) or not factor > 1:
        return plain
    began = number(scaling, "original_max_position_embeddings") or plain
    return min(_MOST_POSITIONS, max(plain, int(began * min(factor, _FARTHEST))))


def _architecture(top: Config) -> str:
    names: Any = top.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    return first[:_SHOWN] if isinstance(first, str) and re.fullmatch(r"\S+", first) else ""
