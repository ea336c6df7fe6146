"""Values of a model's config.json: what its class fills in, and its tables next to the vocabulary.

Any key may hold anything: what is not as expected counts as not given. A token needs single rows of the tables; the
formulas are from the classes of vLLM 0.33.0 and SGLang 0.5.23. In one of these, such tables are 30 to 130 % of
everything else: a config that names tables in a way not known here must not pass for one without.
"""

import re
from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]


def number(config: Config, *names: str) -> int:
    """The first of the keys that holds a whole number above 0; 0 when none does."""
    values = (config.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)


def numbers(value: Any) -> list[int]:
    """The whole numbers of a list, 0 and above; an empty list for what is none."""
    listed = value if isinstance(value, list) else []
    return [v for v in listed if isinstance(v, int) and not isinstance(v, bool) and v >= 0]


def mappings(value: Any) -> list[Config]:
    """The mappings of a list; an empty list for what is none."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """The entries of a list as text; an empty list for what is none."""
    return [str(v) for v in value] if isinstance(value, list) else []


def word(config: Config, *names: str) -> str:
    """The first of the keys that holds text; '' when none does."""
    return next((v for name in names if isinstance(v := config.get(name), str)), "")


def part(config: Config, *names: str) -> Config:
    """The first of the keys that holds a mapping; an empty one when none does."""
    return next((v for name in names if isinstance(v := config.get(name), Mapping)), {})


# What the classes of Hugging Face transformers (5.23) fill in where a config.json leaves it out, by model_type.
_GEMMA = {"tie_word_embeddings": True, "head_dim": 256}
_DELTA = {"full_attention_interval": 4, "linear_conv_kernel_dim": 4, "head_dim": 256}
_GEMMA4 = {**_GEMMA, "sliding_window_pattern": 6, "global_head_dim": 512}
_FIRST_OF_FOUR = {"sliding_window_pattern": 4, "_anchor": "first"}
_LAST_OF_FOUR = {"sliding_window_pattern": 4, "_anchor": "last", "sliding_window": 2048}
_WINDOWS = {"_every_layer": "sliding_attention"}
_CLASSES: dict[str, dict[str, Any]] = {
    "gemma": _GEMMA,
    "gemma2": {**_GEMMA, "sliding_window_pattern": 2, "sliding_window": 4096},
    "gemma3_text": {
        **_GEMMA,
        "sliding_window_pattern": 6,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
    "gemma3n_text": {**_GEMMA, "sliding_window_pattern": 5, "num_kv_shared_layers": 15},
    "gemma4_text": _GEMMA4,
    "gemma4_unified_text": _GEMMA4,
    "diffusion_gemma_text": _GEMMA4,
    "vaultgemma": {**_GEMMA, "sliding_window_pattern": 2},
    "cohere2": {"sliding_window_pattern": 4, "tie_word_embeddings": True},
    "gpt_oss": {"sliding_window_pattern": 2, "sliding_window": 128, "head_dim": 64},
    "olmo3": {"sliding_window_pattern": 4},
    "kolibri1": {"sliding_window_pattern": 5},
    "granite_swa": _FIRST_OF_FOUR,
    "granitemoe_swa": _FIRST_OF_FOUR,
    "cwm": _FIRST_OF_FOUR,
    "muse_glimmer_text": _LAST_OF_FOUR,
    "muse_spark_text": _LAST_OF_FOUR,
    "afmoe": {"global_attn_every_n_layers": 4},
    "llama4_text": {"attention_chunk_size": 8192, "no_rope_layer_interval": 4, "head_dim": 128},
    "qwen3": {"head_dim": 128},
    "qwen3_next": _DELTA,
    "qwen3_5_text": _DELTA,
    "qwen3_5_moe_text": _DELTA,
    "qwen4_exp_text": _DELTA,
    "nemotron_h": {"mamba_ssm_cache_dtype": "float32", "head_dim": 128},
    "falcon_h1": {"_every_layer": "mamba_attention"},
    "olmo_hybrid": {"full_attention_interval": 4},
    "minimax": {"full_attention_interval": 2},
    "glm5_next_text": {"full_attention_interval": 4, "linear_conv_kernel_dim": 4},
    "kimi_linear": {"linear_conv_kernel_dim": 4},
    # Its num_layers are pairs of attention layers.
    "longcat_flash": {"_attentions_per_layer": 2},
    "mistral": _WINDOWS,
    "ministral": _WINDOWS,
    "mixtral": _WINDOWS,
    "phi3": _WINDOWS,
    "phimoe": _WINDOWS,
    "starcoder2": _WINDOWS,
}


def complete(config: Config) -> Config:
    """The config with what its class would fill in; null counts as left out."""
    said = {key: value for key, value in config.items() if value is not None}
    return {**_CLASSES.get(word(said, "model_type"), {}), **said}


_TELLING = re.compile(r"(ngram|engram|ple|oe|over_encoding|per_layer_embed\w*)_\w+|hidden_size_per_layer_input")
_FORMATS = {"float8_e4m3fn": "fp8", "nvfp4": "nvfp4"}


def tables(config: Config) -> dict[str, Any]:
    """ModelShape's fields about tables."""
    found = next(filter(None, (kind(config) for kind in (_per_layer, _ngram, _engram, _ratio))), {})
    return found or {"tables_unknown": bool(named(config))}


def named(config: Config) -> list[str]:
    """Keys that speak of such tables; none where a list shows that no layer has one."""
    told = [key for key in config if _TELLING.fullmatch(key)]
    if any(key.endswith("_layer_ids") and not config[key] for key in told):
        return []
    return sorted(key for key in told if config[key])


def _per_layer(config: Config) -> dict[str, Any]:
    """A second embedding for every layer (Gemma 3n and 4, E models), in the numbers of the first."""
    width, words = number(config, "hidden_size_per_layer_input"), number(config, "vocab_size_per_layer_input")
    total = width * (words or number(config, "vocab_size")) * number(config, "num_hidden_layers")
    return {"tables": total, "table_format": "bf16"} if total else {}


def _ngram(config: Config) -> dict[str, Any]:
    """Tables of the last n tokens (Qwen4Exp): each of their heads has so many rows, and a part of the width.

    ple_embedding_dtype names their numbers; without it they are as the checkpoint wrote them. The class fills in sizes.
    """
    size, rows = number(config, "ngram_size") or 3, number(config, "ngram_vocab_size_base") or 20_000_000
    width = number(config, "ple_embed_dim", "hidden_size")
    layers = len(numbers(config.get("ple_layer_ids")))
    heads = (size - 1) * (number(config, "heads_per_ngram") or 8)
    if not layers or heads < 1:
        return {}
    written = _FORMATS.get(word(config, "ple_embedding_dtype"), "")
    return {"tables": layers * heads * rows * (width // heads), "table_format": written}


def _engram(config: Config) -> dict[str, Any]:
    """Engram (DeepSeek-V4.1): rows of FP8 with a scale for 32 numbers, a table for each of some layers."""
    rows, width = numbers(config.get("engram_num_embeddings")), number(config, "engram_head_dim")
    return {"tables": sum(rows) * width, "table_format": "mxfp8"} if sum(rows) * width else {}


def _ratio(config: Config) -> dict[str, Any]:
    """As many rows as so many vocabularies, over all of its heads as wide as the model (LongCat's n-grams)."""
    times = number(config, "ngram_vocab_size_ratio")
    rows, width = times * number(config, "vocab_size"), number(config, "hidden_size")
    return {"tables": rows * width, "table_format": "bf16"} if rows * width else {}
