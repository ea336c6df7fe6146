"""config.json of a model, of any family that today's engines serve -> ModelShape. Never from a name.

Keys and what their absence means: the configuration classes of Hugging Face transformers, read as files of the
families in tests/data/models. What no key says stays 0 or ''; without layers and heads the model is Unknown.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts.model_weights import weights

Config = Mapping[str, Any]

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_WORKING = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k")
_EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
_SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
_SHARED_WIDTH = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
_DRAFTS = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers", "num_mtp_layers")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
# Nemotron-H writes its layers as letters: Mamba, attention, experts, dense FFN.
_LETTERS = {"M": "mamba", "*": "full_attention", "E": "moe", "-": "mlp"}
_SHOWN = 200
_MOST_LAYERS = 10_000  # layers are counted one by one


def parse(text: str) -> ModelShape | Unknown:
    """The shape, or Unknown with what is missing. Never raises."""
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return Unknown(text[:_SHOWN], "config.json is no JSON")
    if not isinstance(top, Mapping):
        return Unknown(text[:_SHOWN], "config.json is no mapping")
    config = _language(top)
    if not _number(config, *_LAYERS) or not _number(config, *_HEADS):
        return Unknown(_architecture(top), "config.json says neither how many layers nor how many heads")
    if _number(config, *_LAYERS) > _MOST_LAYERS:
        return Unknown(_architecture(top), f"config.json says more than {_MOST_LAYERS} layers; no model has so many")
    kinds = _kinds(config)
    odd = sorted(word for word in kinds if not _sort(word))
    if odd:
        return Unknown(_architecture(top), f"config.json names a kind of layer that is not known here: {odd[0][:40]}")
    return _shape(top, config, Counter(_sort(word) for word in kinds.elements()))


def _shape(top: Config, config: Config, kinds: Mapping[str, int]) -> ModelShape:
    return ModelShape(
        architecture=_architecture(top),
        layers=_number(config, *_LAYERS),
        hidden=_number(config, "hidden_size", "n_embd", "d_model"),
        vocab=_number(config, "vocab_size") or _number(top, "vocab_size"),
        positions=_number(config, *_POSITIONS),
        tied=bool(config.get("tie_word_embeddings", top.get("tie_word_embeddings", False))),
        mtp_layers=_number(config, *_DRAFTS),
        **_attention(config),
        **_layers(config, kinds),
        **_ffn(config, kinds),
        **weights(top, config, _number(config, *_LAYERS)),
    )


def _language(top: Config) -> Config:
    """The part that is about text: models that also see or hear nest it."""
    inner = next((top[name] for name in _NESTED if isinstance(top.get(name), Mapping)), None)
    return top if inner is None or _number(top, *_LAYERS) else _language(inner)


def _architecture(top: Config) -> str:
    names = top.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    return first[:_SHOWN] if isinstance(first, str) and re.fullmatch(r"\S+", first) else ""


def _number(config: Config, *names: str) -> int:
    """The first of the keys that holds a whole number above 0."""
    values = (config.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)


def _attention(config: Config) -> dict[str, Any]:
    heads, rope = _number(config, *_HEADS), _number(config, "qk_rope_head_dim")
    rank = _number(config, "kv_lora_rank")
    nope = _number(config, "qk_nope_head_dim")
    own = _number(config, "head_dim") or _number(config, "hidden_size", "n_embd") // heads
    width = nope + rope if rank and nope else own
    return {
        "heads": heads,
        # Written nowhere: as many as queries, the default of the classes that have the key at all.
        "kv_heads": 1 if rank else _number(config, *_KV_HEADS) or heads,
        "head_dim": width,
        "value_dim": _number(config, "v_head_dim"),
        "latent": rank + rope if rank else 0,
        "rope_dim": rope,
        "query_rank": _number(config, "q_lora_rank"),
        "output_rank": _number(config, "o_lora_rank"),
        "output_groups": _number(config, "o_groups"),
    }


def _kinds(config: Config) -> Counter[str]:
    """How many layers of which kind, in the config's own words; empty: it does not tell them apart."""
    count = _number(config, *_LAYERS)
    listed = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(listed, list):
        return Counter(str(word) for word in listed[:count])
    letters = config.get("hybrid_override_pattern")
    if isinstance(letters, str):
        return Counter(_LETTERS.get(letter, letter) for letter in letters.replace("|", "")[:count])
    return _by_ratio(config) or _by_list(config) or _by_interval(config, count)


def _by_ratio(config: Config) -> Counter[str]:
    ratios = _counts(config.get("compress_ratios"))[: _number(config, *_LAYERS)]
    return Counter("full_attention" if ratio else "sliding_attention" for ratio in ratios)


def _by_list(config: Config) -> Counter[str]:
    """Kimi's linear attention lists the layers of each kind."""
    linear = config.get("linear_attn_config")
    lists = {"full_attention": "full_attn_layers", "linear_attention": "kda_layers"}
    found = {kind: linear.get(key) for kind, key in lists.items()} if isinstance(linear, Mapping) else {}
    return Counter({kind: len(value) for kind, value in found.items() if isinstance(value, list)})


def _by_interval(config: Config, count: int) -> Counter[str]:
    other = "sliding_attention"
    every = _number(config, "sliding_window_pattern")
    if _number(config, "linear_num_value_heads"):
        other, every = "linear_attention", _number(config, "full_attention_interval")
    full = count // every if every else 0
    return Counter({"full_attention": full, other: count - full}) if full else Counter()


def _sort(word: str) -> str:
    """full, window, state, sparse, dense; '' for a word that is not known."""
    if word in ("moe", "mlp"):
        return {"moe": "sparse", "mlp": "dense"}[word]
    if re.search(r"linear|mamba|recurrent|ssm|kda|delta", word):
        return "state"
    if re.search(r"sliding|chunked|window|local", word):
        return "window"
    return "full" if "attention" in word else ""


def _layers(config: Config, kinds: Mapping[str, int]) -> dict[str, Any]:
    linear = config.get("linear_attn_config")
    inner = linear if isinstance(linear, Mapping) else {}
    heads = _number(config, "linear_num_key_heads", "n_groups", "mamba_n_groups") or _number(inner, "num_heads")
    many = _number(config, "linear_num_value_heads", "mamba_num_heads", "mamba_n_heads") or _number(inner, "num_heads")
    each = _number(config, "linear_value_head_dim", "mamba_head_dim", "mamba_d_head") or _number(inner, "head_dim")
    state = kinds.get("state", 0)
    return {
        "full_layers": kinds.get("full", 0),
        "window_layers": kinds.get("window", 0),
        "window": _number(config, "sliding_window", "attention_chunk_size") if kinds.get("window") else 0,
        "compress": tuple(_counts(config.get("compress_ratios"))[: _number(config, *_LAYERS)]),
        "state_layers": state,
        "state_heads": heads if state else 0,
        "state_width": many * each if state else 0,
        "single_blocks": _single(kinds),
        "ffn_layers": kinds.get("sparse", 0) + kinds.get("dense", 0),
    }


def _single(kinds: Mapping[str, int]) -> bool:
    return bool(kinds.get("sparse") or kinds.get("dense"))


def _ffn(config: Config, kinds: Mapping[str, int]) -> dict[str, Any]:
    experts, dense = _number(config, *_EXPERTS), _number(config, "intermediate_size", "n_inner", "ffn_hidden_size")
    ungated = config.get("mlp_hidden_act") == "relu2"
    if experts < 2:
        return {"intermediate": dense, "ungated": ungated}
    own = _number(config, *_EXPERT_WIDTH)
    width = own or dense
    # A width of their own counts, not their number: Nemotron-H has one of twice an expert's width.
    shared = -(-_number(config, *_SHARED_WIDTH) // max(width, 1)) or _number(config, *_SHARED)
    return {
        # Without a width of their own the experts have this one, and there is no dense FFN.
        "intermediate": _number(config, "dense_intermediate_size") or (dense if own else 0),
        "experts": experts,
        "experts_per_token": _number(config, *_WORKING),
        "expert_intermediate": width,
        "expert_hidden": _number(config, "moe_latent_size"),
        "shared_experts": shared,
        "moe_layers": kinds["sparse"] if _single(kinds) else _sparse_layers(config),
        "ungated": ungated,
    }


def _sparse_layers(config: Config) -> int:
    """Layers with experts: the keys say which are dense, each family in its own way."""
    layers = range(_number(config, *_LAYERS))
    first = _number(config, "first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
    marks, only = config.get("moe_layer_freq"), _counts(config.get("mlp_only_layers"))
    if isinstance(marks, list):
        return sum(1 for mark in marks[: len(layers)] if mark)
    step = _number(config, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq") or 1
    # decoder_sparse_step counts from one, moe_layer_freq from zero (and then every step-th from there).
    shift = 0 if "moe_layer_freq" in config else 1
    return sum(1 for n in layers if n >= first and n not in only and (n + shift) % step == 0)


def _counts(value: Any) -> list[int]:
    """The whole numbers of a list; an empty list for what is none."""
    listed: Iterable[Any] = value if isinstance(value, list) else ()
    return [v for v in listed if isinstance(v, int) and not isinstance(v, bool) and v >= 0]
